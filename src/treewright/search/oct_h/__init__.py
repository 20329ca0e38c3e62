"""Search for OCT-H."""
