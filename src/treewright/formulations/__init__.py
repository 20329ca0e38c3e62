"""One file a model: data to program, solution to tree (or weights), tree to start."""

from treewright.formulations.base import Formulation, TreeFormulation
from treewright.formulations.binoct import BinOCT
from treewright.formulations.c2rf import C2RF
from treewright.formulations.fair import FairOCT
from treewright.formulations.oct import OCT
from treewright.formulations.oct_h import OCTH
from treewright.formulations.octsvm import OCTSVM, RESVM
from treewright.formulations.s2oct import S2OCT
from treewright.formulations.svm1odt import SVM1ODT

__all__ = [
    "C2RF",
    "OCT",
    "OCTH",
    "OCTSVM",
    "RESVM",
    "S2OCT",
    "SVM1ODT",
    "BinOCT",
    "FairOCT",
    "Formulation",
    "TreeFormulation",
]
