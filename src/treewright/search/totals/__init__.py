"""Labels from scores within class totals."""
