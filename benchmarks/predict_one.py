"""Time of ``predict_one`` for a row of 20 features on a serving file: python benchmarks/predict_one.py."""

import pathlib
import tempfile
import time

import numpy as np

import forel
from forel.store import serving_model

ROWS, CALLS = 2000, 20_000


def rows(number: int) -> list[dict[str, object]]:
    """Return rows of ten categories, ten numbers and a label."""
    rng = np.random.default_rng(1)
    words, numbers = rng.integers(50, size=(number, 10)), rng.normal(size=(number, 10))
    labels = (numbers[:, 0] + words[:, 0] / 25 > 1).astype(int)
    return [
        {f"c{k}": f"word{w}" for k, w in enumerate(word)}
        | {f"n{k}": float(v) for k, v in enumerate(value)}
        | {"y": int(y)}
        for word, value, y in zip(words, numbers, labels, strict=True)
    ]


def main() -> None:
    """Train, save a serving file, and print microseconds of processor time per row."""
    examples = rows(ROWS)
    trained = forel.train(examples, label="y", bits=18)
    path = pathlib.Path(tempfile.mkdtemp()) / "serving.forel"
    forel.save(path, serving_model(trained.learner), trained.extra)
    stored, requests = forel.load(path), [{k: v for k, v in row.items() if k != "y"} for row in examples]
    for row in requests:
        stored.predict_one(row)
    best = float("inf")
    for _ in range(5):
        started = time.process_time()
        for k in range(CALLS):
            stored.predict_one(requests[k % ROWS])
        best = min(best, (time.process_time() - started) / CALLS)
    print(f"predict_one, 20 features: {best * 1e6:.2f} µs per row")


if __name__ == "__main__":
    main()
