"""OCT-H: optimal trees with hyperplane splits (Bertsimas and Dunn 2017)."""
