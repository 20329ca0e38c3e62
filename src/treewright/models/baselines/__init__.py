"""Models for comparison: Laplacian support vector machine, semi-supervised trees, self-training."""
