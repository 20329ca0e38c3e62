"""Weights of an ensemble's members under which its votes meet totals."""
