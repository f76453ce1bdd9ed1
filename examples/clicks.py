"""Click prediction, from a raw CSV file to a small model for serving, in one pass.

A CSV file needs no preparation: words become hashed categories. Held-out rows measure the model during training, L1
makes most weights exactly 0, and the serving file has only the others. The clicks are synthetic, so that the log-loss
of the true probabilities is known: no model can expect a smaller one.

``python examples/clicks.py [rows]``
"""

import pathlib
import sys
import tempfile

import numpy as np

import forel
from forel.data.clicks import write_clicks
from forel.learner.settings import Settings
from forel.store import serving_model

ROWS = 30_000


def main() -> None:
    """Write clicks, train, save the non-zero weights, and predict with them."""
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else ROWS
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        with open(folder / "clicks.csv", "wb") as file:
            truth = write_clicks(file, rows, "csv")
        print(f"{rows:,} rows of 39 columns, {truth.clicks / rows:.1%} of them clicked\n")
        print(f"{'λ1':>5} {'log-loss held out':>18} {'AUC':>7} {'weights':>9} {'serving file':>13}")
        for l1 in (0.0, 1.0, 4.0):
            trained = forel.train(folder / "clicks.csv", Settings(alpha=0.1, l1=l1), label="click", bits=20, holdout=10)
            small = serving_model(trained.learner, dtype="float16")
            forel.save(folder / "serving.forel", small, extra=trained.extra)
            size = (folder / "serving.forel").stat().st_size / 1e6
            held_out = trained.training.holdout
            assert held_out is not None
            print(f"{l1:5g} {held_out.loss:18.4f} {held_out.auc:7.4f} {small.slots.size:9,} {size:10.2f} MB")
        print(f"{'truth':>5} {truth.loss:18.4f}\n")
        serve(folder, trained)


def serve(folder: pathlib.Path, trained: "forel.training.trained.Model") -> None:
    """Load the serving file and predict the first rows."""
    stored = forel.load(folder / "serving.forel")
    reader = forel.data.read(folder / "clicks.csv", **stored.extra["reading"])
    block = next(iter(reader))
    rows = forel.learner.rows.Rows(*block.rows)
    probabilities = stored.learner.predict(rows)[:5, 0]
    expected = 1 / (1 + np.exp(-trained.learner.margins(rows)[:5, 0]))
    print("probability of a click, first rows:", *(f"{p:.3f}" for p in probabilities))
    assert np.allclose(probabilities, expected, atol=2e-3), "float16 changes predictions only a little"


if __name__ == "__main__":
    main()
