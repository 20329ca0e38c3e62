"""The problem of one node: thresholds, directions, linear programs."""
