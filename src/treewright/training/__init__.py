"""What a fit does, without scikit-learn's face."""
