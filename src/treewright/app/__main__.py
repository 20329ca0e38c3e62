"""``python -m treewright.app``: the command line."""

import sys

from treewright.app import main

if __name__ == "__main__":
    sys.exit(main())
