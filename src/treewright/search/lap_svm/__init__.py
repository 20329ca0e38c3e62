"""The Laplacian support vector machine."""
