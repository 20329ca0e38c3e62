"""``python -m treewright.cli``: the command line."""

import sys

from treewright.cli import main

if __name__ == "__main__":
    sys.exit(main())
