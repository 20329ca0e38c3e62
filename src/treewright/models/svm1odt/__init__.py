"""SVM1-ODT: 1-norm support vector trees with data selection (Zhu, Murali, Phan, Nguyen, Kalagnanam 2020)."""
