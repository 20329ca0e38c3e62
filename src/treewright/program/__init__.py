"""Mathematical programs as data: sparse rows, bounds, costs, integrality, cones, priorities."""

from treewright.program.builder import ProgramBuilder
from treewright.program.check import Check, check
from treewright.program.program import Cone, Program

__all__ = ["Check", "Cone", "Program", "ProgramBuilder", "check"]
