"""The algorithms of the survey, each assembled from the vocabulary's parts.

``FTRL`` is Algorithms 1 and 2 with everything that can be varied; ``MirrorDescent`` is section 6.
"""

from forel.algorithms.algorithm import Algorithm, Round
from forel.algorithms.ftrl import FTRL, follow_the_leader
from forel.algorithms.mirror_as_ftrl import MirrorAsFTRL, as_ftrl_proximal
from forel.algorithms.mirror_descent import MirrorDescent
from forel.algorithms.treatments import Exact, Linearized, QuadraticBound

__all__ = [
    "FTRL",
    "Algorithm",
    "Exact",
    "Linearized",
    "MirrorAsFTRL",
    "MirrorDescent",
    "QuadraticBound",
    "Round",
    "as_ftrl_proximal",
    "follow_the_leader",
]
