"""Teachers: what good classifiers say of the unlabelled points, for trees to learn from."""
