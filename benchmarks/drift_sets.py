"""Generated streams of two classes whose distribution changes, for ``benchmarks/quality.py``, as lines of VW text.

Fixed share, the expert for such streams, was chosen on the first three, and on data sets of ``quality.py``.
"""

import numpy as np
from regression_sets import numbers


def labelled(rng, margin, features):
    """An example with a label of the logistic model."""
    return f"{1 if rng.random() < 1 / (1 + np.exp(-margin)) else -1} | {features}\n"


def weights(seed, walk=0.0, jumps=0.0, rows=20_000, features=10):
    """Numeric features with weights that are random walks, or drawn anew at random times."""
    rng = np.random.default_rng(seed)
    names, w = [f"f{i}" for i in range(features)], rng.normal(size=features)
    for _ in range(rows):
        w = 2 * rng.normal(size=features) if rng.random() < jumps else w + walk * rng.normal(size=features)
        x = rng.normal(size=features)
        yield labelled(rng, x @ w, numbers(names, x))


def categories(seed, walk=0.0, jumps=0.0, rows=30_000, values=200):
    """Four categories with Zipf frequencies, whose effects are random walks, or drawn anew one category at a time."""
    rng = np.random.default_rng(seed)
    effects, p = rng.normal(size=(4, values)), 1 / np.arange(1, values + 1)
    for _ in range(rows):
        effects += walk * rng.normal(size=effects.shape) if walk else 0.0
        if rng.random() < jumps:
            effects[rng.integers(4)] = 1.5 * rng.normal(size=values)
        own = rng.choice(values, size=4, p=p / p.sum())
        yield labelled(
            rng, effects[range(4), own].sum() - 1, " ".join(f"{c}{v}" for c, v in zip("abcd", own, strict=True))
        )


def regimes(seed, period, rows=20_000, features=20):
    """Two models that take turns."""
    rng = np.random.default_rng(seed)
    names, w = [f"f{i}" for i in range(features)], rng.normal(size=(2, features))
    for t in range(rows):
        x = rng.normal(size=features)
        yield labelled(rng, x @ w[t // period % 2], numbers(names, x))


CHOSEN = {
    "weights that walk": lambda: weights(1, walk=0.03),
    "weights that walk slowly": lambda: weights(2, walk=0.005),
    "categories that jump": lambda: categories(4, jumps=0.0005),
}
SETS = {
    **CHOSEN,
    "weights that jump": lambda: weights(3, jumps=0.001),
    "categories that walk": lambda: categories(5, walk=0.02),
    "turns of 2,000 rows": lambda: regimes(6, 2000),
    "turns of 300 rows": lambda: regimes(7, 300),
    "weights that stay": lambda: weights(8),
}
