"""The command line: thin, everything it does is one call away in Python."""

from treewright.cli.entry import main

__all__ = ["main"]
