"""What a model is given: validated rows, class totals, scalings."""

from treewright.data.mixed import Features
from treewright.data.point_totals import PointTotals
from treewright.data.problem import Problem, make_problem
from treewright.data.reduction import (
    Compact,
    Merge,
    Reduction,
    Sample,
    Scale,
    Weighted,
    distinct_rows,
    labelled_sample,
    reduced_sample,
)
from treewright.data.scaling import (
    Scaling,
    held_weights,
    mean_and_spread,
    of_unit_spread,
    refuse_narrow,
    s2oct_scaling,
    target_spread,
    unit_scaling,
    weight_unit,
    weighted_mean,
)
from treewright.data.totals import ClassTotals, LabelledRows, TotalsRules, parse_totals

__all__ = [
    "ClassTotals",
    "Compact",
    "Features",
    "LabelledRows",
    "Merge",
    "PointTotals",
    "Problem",
    "Reduction",
    "Sample",
    "Scale",
    "Scaling",
    "TotalsRules",
    "Weighted",
    "distinct_rows",
    "held_weights",
    "labelled_sample",
    "make_problem",
    "mean_and_spread",
    "of_unit_spread",
    "parse_totals",
    "reduced_sample",
    "refuse_narrow",
    "s2oct_scaling",
    "target_spread",
    "unit_scaling",
    "weight_unit",
    "weighted_mean",
]
