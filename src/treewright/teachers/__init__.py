"""Whom trees learn from: classifiers pooled by labels left out, estimators that users give, ensembles."""
