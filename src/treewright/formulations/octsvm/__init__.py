"""OCTSVM and RE-SVM: the models and what a tree costs in them."""

from treewright.formulations.octsvm.loss import flip_below, flips, node_loss
from treewright.formulations.octsvm.model import OCTSVM, RESVM
from treewright.formulations.octsvm.repair import pruned, scaled

__all__ = ["OCTSVM", "RESVM", "flip_below", "flips", "node_loss", "pruned", "scaled"]
