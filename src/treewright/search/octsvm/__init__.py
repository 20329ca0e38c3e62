"""Trees of support vector machines with relabelling, without branch and bound."""
