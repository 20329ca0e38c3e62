"""C2RF: ensembles whose weighted votes meet class totals (Burgard, Pinheiro, Schmidt 2025)."""
