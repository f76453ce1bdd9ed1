"""Games and adversaries for the tests of bounds."""

import math

from forel.theory.rates import (
    Constant,
)
from forel.theory.sets import Box, Simplex, l2_ball

N, T = 4, 64


BALL, CUBE, SIMPLEX = l2_ball(1.0), Box(-1, 1), Simplex()


TUNED = Constant(1 / math.sqrt(T))
