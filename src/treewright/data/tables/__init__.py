"""Tables in files and frames: reading, writing, what columns are, and their columns as features."""
