"""A fitted model in other forms: Python, SQL, ONNX, scikit-learn, a frame of nodes, how much features matter."""
