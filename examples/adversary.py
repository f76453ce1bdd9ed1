"""Three games in which an unsuitable algorithm fails: its regret grows too fast, or its bound is void.

1. Follow-The-Leader without a regularizer, against gradients that alternate: it always reacts one round too late.
2. A rate that decreases with time, for rare gradients in changing coordinates: AdaGrad's rates decrease only in
   coordinates that had gradients.
3. A rate for gradients of norm 1 when they have norm 10: the bound is void, and forel gives the reason.

Survey: sections 2.2, 3.2 and 3.4
"""

import numpy as np

from forel.losses import Linear
from forel.theory.algorithms import FTRL, Algorithm, adagrad_ftrl_proximal, dual_averaging, ftrl_proximal
from forel.theory.analysis import dual_averaging_formula, play
from forel.theory.analysis.adversaries import spikes, worst_linear
from forel.theory.geometries import Euclidean
from forel.theory.rates import Constant
from forel.theory.sets import Box

SIZES = (500, 2000, 8000)


def alternating(t: int, x: np.ndarray) -> Linear:
    """Return gradients ½, −1, 1, −1, …: their sum, and with it the leader, changes its sign in every round."""
    return Linear([0.5 if t == 1 else (-1.0) ** (t + 1)])


def table(title: str, players: dict[str, Algorithm], adversary: object, n: int, box: Box) -> None:
    """Print the regret against the best fixed point, and the power of T by which it grows."""
    print(f"{title}\n{'':24}{''.join(f'T = {T:<8}' for T in SIZES)}grows like")
    for name, player in players.items():
        regrets = [play(player, adversary, rounds=T, n=n).worst_regret(box) for T in SIZES]
        power = np.log(max(regrets[-1], 1e-9) / max(regrets[-2], 1e-9)) / np.log(SIZES[-1] / SIZES[-2])
        print(f"  {name:22}{''.join(f'{r:<12.2f}' for r in regrets)}T^{power:.2f}")
    print()


def main() -> None:
    """Play the three games."""
    box = Box(-1, 1)
    leader = FTRL(Constant(1e9), Euclidean(), feasible=box)  # so large a rate makes the regularizer negligible
    table("Alternating gradients", {"leader": leader, "dual averaging": dual_averaging(1, 1, box)}, alternating, 1, box)
    table(
        "Rare gradients in changing coordinates, 10 in all",
        {"one rate, c/√t": ftrl_proximal(10**0.5, 1.0, box), "AdaGrad": adagrad_ftrl_proximal(1.0)},
        spikes(period=100),
        10,
        box,
    )
    trace = play(dual_averaging(1.0, 1.0, box), worst_linear(lipschitz=10.0), rounds=100, n=1)
    x = np.array([1.0])
    print("Gradients ten times as large as promised")
    print(f"  regret {trace.worst_regret(box):.1f}; {dual_averaging_formula(trace, x, 1.0, 1.0)}")


if __name__ == "__main__":
    main()
