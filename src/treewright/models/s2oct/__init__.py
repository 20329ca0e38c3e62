"""S2OCT: semi-supervised optimal trees with class totals (Burgard, Pinheiro, Schmidt 2024)."""
