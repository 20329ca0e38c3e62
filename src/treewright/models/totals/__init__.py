"""Any classifier of scikit-learn, cut at known class totals."""
