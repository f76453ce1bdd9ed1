r"""Lower bounds on −ℓ*(θs) for slopes s and 0 ≤ θ ≤ 1, for the losses of ``forel.losses`` that need sums for it.

Each function has the name of a loss and returns c₀, c₁ and c₂, all in float64, such that

$$-\ell^\star(\theta s) \ge -\theta \ell^\star(s) + (1-\theta)c_0 + \theta(1-\theta)c_1 - \theta\log(\theta)c_2.$$

c₀ is the minimum of the loss. Between p = y and p = y + s, −ℓ* is a sum of functions −p log p and linear ones. How
far −p log p is above its chord, divided by θ(1 − θ), is half the mean of s²/p under a triangular distribution whose
mode moves from one end to the other with θ. It is therefore monotone, and smallest at the end where p is larger.
"""

import numpy as np

from forel.learner.kernels.reference import inline


@inline
def above_chord(distance, larger):
    """Return a lower bound on a log(a/b) − a + b, b = larger and a = b − distance, from a series of positive terms."""
    r = distance / larger
    return distance * r * (0.5 + r * (1 / 6 + r / 12))


@inline
def huber(slope, label):
    """Return the bound, which is an equality: −ℓ*(s) = −sy − s²/2."""
    return 0.0, 0.5 * slope * slope, 0.0


@inline
def poisson(slope, label):
    """Return the bound for −ℓ*(s) = p − p log p with p = s + y; for y = 0 it is an equality."""
    if label == 0:
        return 0.0, 0.0, slope
    return label - label * np.log(label), above_chord(abs(slope), max(label, label + slope)), 0.0


@inline
def logistic(slope, label):
    """Return the bound for the entropy of p = s + y, −p log p − (1 − p) log(1 − p), and y between 0 and 1."""
    other = 1 - label
    least = -label * np.log(label) - other * np.log(other)
    size = abs(slope)
    return least, above_chord(size, max(label, label + slope)) + above_chord(size, max(other, other - slope)), 0.0
