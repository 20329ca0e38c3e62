"""What finds good trees and bounds without branch and bound.

Each ``search_*`` offers ever better solutions to an `Incumbent` and ends when that is proven optimal. It takes the
model, solutions to start from in the units of the model, a budget that ends it early (something is offered whatever it
says), and the seed of everything random.
"""

from treewright.search.incumbent import Incumbent
from treewright.search.oct_h.attempts import search_oct_h

__all__ = ["Incumbent", "search_oct_h"]
