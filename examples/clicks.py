"""Will this ad be clicked? From a raw CSV file to a small model that serves, in one pass.

What one learns here: a CSV file needs no preparation, since words become hashed categories; rows that are held out
judge the model while it learns; L1 leaves few weights; and the file for serving has only those. The clicks are made
up, so that the log-loss of the true chances is known: what is above it is the price of not knowing them.

``python examples/clicks.py [rows]``
"""

import pathlib
import sys
import tempfile

import numpy as np

import forel
from forel.data.clicks import write_clicks
from forel.learner.linear import Settings
from forel.store import serving_model

ROWS = 30_000


def main() -> None:
    """Write the clicks, learn, keep the weights that are not zero, and serve from them."""
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else ROWS
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        with open(folder / "clicks.csv", "wb") as file:
            truth = write_clicks(file, rows, "csv")
        print(f"{rows:,} rows of 39 columns, {truth.clicks / rows:.1%} of them clicked\n")
        print(f"{'λ1':>5} {'log-loss held out':>18} {'AUC':>7} {'weights':>9} {'serving file':>13}")
        for l1 in (0.0, 1.0, 4.0):
            trained = forel.train(folder / "clicks.csv", Settings(alpha=0.1, l1=l1), label="click", bits=20, holdout=10)
            small = serving_model(trained.model, dtype="float16")
            forel.save(folder / "serving.forel", small, extra=trained.extra)
            size = (folder / "serving.forel").stat().st_size / 1e6
            held = trained.holdout
            assert held is not None
            print(f"{l1:5g} {held.loss:18.4f} {held.auc:7.4f} {small.slots.size:9,} {size:10.2f} MB")
        print(f"{'truth':>5} {truth.loss:18.4f}\n")
        serve(folder, trained)


def serve(folder: pathlib.Path, trained: "forel.training.trained.Trained") -> None:
    """Load the small file, as a server would, and predict the first rows."""
    stored = forel.load(folder / "serving.forel")
    reader = forel.data.read(folder / "clicks.csv", **stored.extra["reading"])
    block = next(iter(reader))
    rows = forel.learner.linear.Rows(*block.rows)
    chances = stored.model.predict(rows)[:5, 0]
    whole = 1 / (1 + np.exp(-trained.model.margins(rows)[:5, 0]))
    print("chance of a click, first rows:", *(f"{p:.3f}" for p in chances))
    assert np.allclose(chances, whole, atol=2e-3), "half the bits of a weight change no prediction much"


if __name__ == "__main__":
    main()
