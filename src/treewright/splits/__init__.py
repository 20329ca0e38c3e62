"""The problem of one node: thresholds, segments, directions, linear programs in which points join, categories."""
