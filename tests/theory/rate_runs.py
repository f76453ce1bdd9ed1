"""Rates run over gradients, for the tests of rates."""

from forel.theory.rates import (
    ScaleFree,
)

N = 3


CURVATURE = 0.25


def states(rate, gradients, curvature=CURVATURE):
    """All states of a run; a rate that uses features gets the gradients, as if every derivative were 1."""
    path = [rate.init(len(gradients[0]) if len(gradients) else N)]
    for g in gradients:
        before = rate.observe(path[-1], g) if isinstance(rate, ScaleFree) else path[-1]
        path.append(rate.update(before, g, curvature))
    return path


def strengths(rate, gradients, curvature=CURVATURE):
    return [rate.strength(state) for state in states(rate, gradients, curvature)]
