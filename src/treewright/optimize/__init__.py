"""How a model is optimized: formulations, rows that programs share, search, bounds, branch and bound, record."""
