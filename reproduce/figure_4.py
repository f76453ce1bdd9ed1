"""The survey's Figure 4: with L1, Mirror Descent alternates around 0 while FTRL reaches 0 and stays there."""

import numpy as np

from forel.theory import plot
from forel.theory.algorithms import FTRL, MirrorDescent
from forel.theory.analysis import play
from forel.theory.analysis.adversaries import l1_example_alternating
from forel.theory.geometries import Euclidean
from forel.theory.penalties import l1
from forel.theory.rates import Constant
from forel.theory.sets import Box
from forel.theory.weights import EveryRound
from reproduce.claim import Claim

LIPSCHITZ, PENALTY, ROUNDS = 11.0, 0.5, 16


def figure_4() -> Claim:
    """Play the one-dimensional example of section 6.2."""
    rate, around = Constant(2 / ROUNDS**0.5), Box(-2 * LIPSCHITZ, 2 * LIPSCHITZ)
    players = {
        "Mirror Descent": MirrorDescent(rate, Euclidean(), l1(PENALTY), EveryRound(), around),
        "Native FTRL": FTRL(rate, Euclidean(), penalty=l1(PENALTY), weights=EveryRound(), feasible=around),
    }
    adversary = l1_example_alternating(LIPSCHITZ, PENALTY)
    paths = {name: play(player, adversary, rounds=ROUNDS, n=1).points[:-1, 0] for name, player in players.items()}
    swings = (LIPSCHITZ - PENALTY) / ROUNDS**0.5
    mirror, native = paths.values()
    holds = np.allclose(np.abs(mirror[1:]), swings) and not native[12:].any() and bool(native[:12].any())
    rounds = (1, 2, 3, 4, 11, 12, 13, 14, 15, 16)
    table = [["t", *map(str, rounds)], *([name, *(f"{x[t - 1]:g}" for t in rounds)] for name, x in paths.items())]
    return Claim(
        "figure_4",
        "Figure 4: FTRL stays at zero",
        "With L1 in one dimension, Mirror Descent never plays 0 after round 1, FTRL in every late round.",
        "McMahan, the survey (2017), section 6.2 and appendix D",
        f"Mirror Descent alternates between ±{swings:g}; FTRL plays exactly 0 from round 13 on. When gradients depend "
        "on the point, as section 6.2 states, FTRL leaves 0 again in round 15: one of the survey's errata.",
        holds,
        table,
        plot.figure_4,
        "points of Mirror Descent and FTRL over 16 rounds, for alternating gradients and for gradients that depend on "
        "the point",
    )
