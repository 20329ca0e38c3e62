"""Exact OCT: branch and bound over cuts, compiled below its last two levels."""
