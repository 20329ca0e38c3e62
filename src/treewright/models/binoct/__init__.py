"""BinOCT: optimal trees by a binary encoding of thresholds (Verwer and Zhang 2019)."""
