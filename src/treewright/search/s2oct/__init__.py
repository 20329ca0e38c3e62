"""Trees that are right on the labels and meet the totals."""
