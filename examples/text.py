"""Sentiment of reviews: many words, of which few are informative, and exact zeros.

With λ‖x‖₁ in every round, dual averaging and FTRL-Proximal set weights to exactly 0 and keep them there. Gradient
descent with the same penalty (FOBOS) uses only the λ of the current round and keeps almost all words. Without an
argument, the reviews are synthetic: 30 informative words and 20,000 others. With a file of lines ``label |f
word:count …``, such as one of the Amazon sets, they are real.

``python examples/text.py [reviews.vw.gz]``

Survey: section 6.2; McMahan (2011)
"""

import pathlib
import sys
import tempfile
from collections.abc import Iterator

import numpy as np

import forel
from forel.learner.settings import Settings

INFORMATIVE, OTHERS, LENGTH, REVIEWS = 30, 20_000, 40, 4000
NAMES = {"proximal": "FTRL-Proximal", "centered": "dual averaging", "mirror": "FOBOS"}


def reviews() -> Iterator[str]:
    """Yield lines of synthetic reviews: informative words such as good7 and bad3, and others."""
    rng = np.random.default_rng(0)
    for _ in range(REVIEWS):
        good = rng.random() < 0.5
        informative = [
            f"{'good' if good == (rng.random() < 0.8) else 'bad'}{rng.integers(INFORMATIVE // 2)}" for _ in range(4)
        ]
        others = [f"w{int(OTHERS ** rng.random())}" for _ in range(LENGTH)]
        yield f"{1 if good else -1} |f {' '.join(informative + others)}\n"


def main() -> None:
    """Train with three algorithms and the same penalty; print the AUC and the number of words of each model."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else folder + "/reviews.vw")
        if len(sys.argv) == 1:
            path.write_text("".join(reviews()))
        print("one pass, one review in five held out; λ‖x‖₁ in every round\n")
        print(f"{'':15} {'λ':>6} {'AUC held out':>13} {'words kept':>11}")
        for l1 in (0.0, 0.001, 0.003):
            for algorithm, name in NAMES.items():
                settings = Settings(algorithm=algorithm, alpha=0.3, l1=l1, penalty_weight="every", bias=False)
                trained = forel.train(path, settings, bits=18, holdout=5, names=True)
                weights = trained.learner.weights[:, 0]
                assert trained.training.holdout is not None
                print(f"{name:15} {l1:6g} {trained.training.holdout.auc:13.4f} {np.count_nonzero(weights):11,}")
                if algorithm == "proximal":
                    smallest, names = weights, trained.names
        best = np.argsort(-np.abs(smallest), kind="stable")[:8]
        print(
            "\nlargest weights of FTRL-Proximal:", *(f"{names[k].removeprefix('f^')} {smallest[k]:+.2f}" for k in best)
        )


if __name__ == "__main__":
    main()
