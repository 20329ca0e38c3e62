"""OCTSVM and RE-SVM: trees of support vector machines that may relabel points (Blanco, Japon, Puerto 2022)."""
