"""How good trees are found without branch and bound: grown from the root, improved node by node, for all models."""
