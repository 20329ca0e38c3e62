"""What is said of a fit from outside: accuracy on labels left out, wrong labels, rows worth training on, folds."""
