"""The search for good SVM1-ODTs."""
