"""Settings with which searches are short, for tests of what holds however much they do."""

from dataclasses import replace

from treewright.optimize.settings import (
    BinOCTSearch,
    OCTHSearch,
    OCTSVMSearch,
    S2OCTSearch,
    SearchSettings,
    SVM1ODTSearch,
    TeacherSettings,
)

SHORT = SearchSettings(
    teacher=TeacherSettings(
        n_trees=10, refined_trees=10, fold_trees=10, boosted_rounds=15, many_boosted_rounds=15, ensemble_trees=20
    ),
    s2oct=S2OCTSearch(idle_attempts=2, idle_taught=2, idle_unproven=2),
    binoct=BinOCTSearch(restarts=4),
    oct_h=OCTHSearch(least_patience=3, most_patience=3),
    svm1odt=SVM1ODTSearch(patience=6),
    octsvm=OCTSVMSearch(patience=3),
)
"""Small forests for C2RF and for teachers; for all that are solved fewer attempts without improvement."""

SHORTEST = replace(
    SHORT,
    teacher=replace(
        SHORT.teacher,
        n_trees=5,
        refined_trees=5,
        refined_rounds=1,
        folds=2,
        fold_trees=5,
        boosted_rounds=5,
        many_boosted_rounds=5,
    ),
    s2oct=replace(
        SHORT.s2oct,
        path=((3, 1.0), (1, 1.0), (2, 1.0), (None, 0.2)),
        random_starts=1,
        path_kicks=1,
        taught_kicks=1,
    ),
)
"""Forests of five trees, fewer folds and rounds of the teacher, sizes of trees and starts of each."""

ALONE = replace(
    SHORTEST,
    program_cells=0,
    oct_h=OCTHSearch(least_patience=0, most_patience=0),
    svm1odt=SVM1ODTSearch(patience=0),
)
"""The same without branch and bound, and without trees that wander."""
