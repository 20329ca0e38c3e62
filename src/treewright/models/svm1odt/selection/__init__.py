"""Which rows a tree is trained on: extreme points of clusters, the linear programs behind them, three algorithms."""
