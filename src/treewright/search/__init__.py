"""What finds good trees and bounds without branch and bound."""

from treewright.search.incumbent import Incumbent
from treewright.search.oct_h import search_oct_h

__all__ = ["Incumbent", "search_oct_h"]
