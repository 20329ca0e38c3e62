"""Trees improved node by node, never worse."""
