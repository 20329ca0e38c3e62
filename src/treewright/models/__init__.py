"""A folder a model: its objective and program, its search, its fit, its face for scikit-learn."""
