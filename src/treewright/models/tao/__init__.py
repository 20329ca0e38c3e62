"""TAO: sparse oblique trees by alternating optimization, for classes and for numbers."""
