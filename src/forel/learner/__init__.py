"""The fast learner: the survey's separable algorithms on sparse rows, compiled."""
