"""Trees grown from the root: CART, oblique greedy, balanced, semi-supervised."""
