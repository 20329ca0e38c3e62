"""OCT: optimal trees with splits of one feature (Bertsimas and Dunn 2017)."""
