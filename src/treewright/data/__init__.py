"""What a model is given: validated rows, class totals, scalings, and the papers' sampling protocols."""

from treewright.data.merge import MergedRows, distinct_rows, merge_rows
from treewright.data.problem import Problem, make_problem
from treewright.data.sampling import biased_sample, drop_duplicate_rows, flip_labels, simple_random_sample
from treewright.data.scaling import Scaling, s2oct_scaling, standard_scaling, target_spread, unit_scaling, weight_unit
from treewright.data.totals import ClassTotals, parse_totals

__all__ = [
    "ClassTotals",
    "MergedRows",
    "Problem",
    "Scaling",
    "biased_sample",
    "drop_duplicate_rows",
    "flip_labels",
    "make_problem",
    "distinct_rows",
    "merge_rows",
    "parse_totals",
    "s2oct_scaling",
    "simple_random_sample",
    "standard_scaling",
    "target_spread",
    "unit_scaling",
    "weight_unit",
]
