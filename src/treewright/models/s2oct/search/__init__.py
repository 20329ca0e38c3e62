"""Trees that are right on the labels and meet the totals.

What functions and classes here take by the same name is the same: `survey`, the points of the model; `taught`, the
labels that unlabelled points should have, those of the teacher to begin with, shape (n_unlabelled,); `guided`, those of
a guide; `planes`, hyperplanes, stretched; `seed` or `rng` of everything random; `budget`, which ends the work early.
"""
