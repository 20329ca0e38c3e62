"""What a fit does, without scikit-learn's face: each ``train_*`` goes from settings and data to a result with a record.

They take the rows (a `Problem` or a `Sample`), the settings of the model, who proves optimality (`Solving`) or how the
work is done (`Conduct`), the time for all of it (`Budget`), and where the model takes one a start. Start and result are
in the units of the data.
"""
