"""The whole job as one function of Python: a table in; its labels, how accurate they are, and a tree out."""
