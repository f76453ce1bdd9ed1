"""Dual averaging assembled from forel's parts: against random gradients, its regret is below the bound in every round.

Survey: section 3.2. The update is x_{t+1} = argmin over X of g_{1:t}·x + ‖x‖²/(2η_t).
"""

import numpy as np

from forel.theory.argmin import Argmin
from forel.theory.geometries import Euclidean
from forel.theory.rates import dual_averaging_rate
from forel.theory.sets import l2_ball

RADIUS, LIPSCHITZ, ROUNDS, N = 2.0, 1.0, 4096, 10


def main() -> None:
    """Play the rounds and print regret and bound at every power of two."""
    rng = np.random.default_rng(0)
    drift = rng.normal(size=N)
    rate, feasible = dual_averaging_rate(RADIUS, LIPSCHITZ), l2_ball(RADIUS)
    play = Argmin(Euclidean(), feasible=feasible)
    state, total, loss = rate.init(N), np.zeros(N), 0.0
    print(f"Regret against the best point with ‖x‖ ≤ {RADIUS:g}, gradients of norm {LIPSCHITZ:g}\n")
    print(f"{'round':>6} {'regret':>9} {'bound':>9}")
    for t in range(1, ROUNDS + 1):
        x = play(total, rate.strength(state))
        g = rng.normal(size=N) + 0.3 * drift
        g *= LIPSCHITZ / np.linalg.norm(g)
        loss += g @ x
        total += g
        state = rate.update(state, g)
        if t & (t - 1) == 0:
            regret = loss + feasible.support(-total)
            bound = np.sqrt(2) * RADIUS * LIPSCHITZ * np.sqrt(t)
            print(f"{t:6} {regret:9.3f} {bound:9.3f}   {'#' * round(60 * regret / bound)}")
            assert regret <= bound


if __name__ == "__main__":
    main()
