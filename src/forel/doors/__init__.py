"""Interfaces: the command line, scikit-learn, river, and the training report."""
