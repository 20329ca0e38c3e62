"""What all estimators share: parameters, rows, the course of a fit and what it leaves, model files; no mathematics."""
