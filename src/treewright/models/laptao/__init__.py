"""LapTAO: a tree and a graph that agree on the labels."""
