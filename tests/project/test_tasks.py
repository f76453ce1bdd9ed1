"""The table of common tasks: every line of its last column runs, in order."""

import pathlib
import re
import shlex

import numpy as np
import pytest
from sklearn.model_selection import cross_val_score
from typer.testing import CliRunner

import forel
from forel.cli.app import app
from forel.losses import Quantile

PAGE = pathlib.Path(__file__).parents[2] / "docs" / "guide" / "tasks.md"
SITES = ["news", "shop", "mail"]
FILES = {
    "clicks.vw": [f"{k % 2} |a x{k % 2} |b y{k % 3}" for k in range(40)],
    "rows.csv": ["site,age,click", *(f"{SITES[k % 2]},{20 + k},{k % 2}" for k in range(40))],
    "prices.csv": ["site,price", *(f"{SITES[k % 3]},{10.5 + k % 3}" for k in range(40))],
    "kinds.csv": ["age,kind", *(f"{20 + k % 3},{SITES[k % 3]}" for k in range(40))],
}


def lines():
    """Return the lines of code in the last column of the table."""
    rows = [line for line in PAGE.read_text().splitlines() if line.startswith("| ") and not line.startswith("| task")]
    return [code for row in rows for code in re.findall("`([^`]+)`", row.rsplit(" | ", 1)[1])]


def test_every_line_of_the_table_runs(tmp_path, monkeypatch, interpreted):
    river = pytest.importorskip("forel.river")
    monkeypatch.chdir(tmp_path)
    for name, content in FILES.items():
        pathlib.Path(name).write_text("".join(f"{line}\n" for line in content))
    X = np.array([[k % 2, k / 20] for k in range(20)])
    rows = [{"site": SITES[k % 2], "click": k % 2} for k in range(20)]
    names = {
        "forel": forel, "rows": rows, "X": X, "Quantile": Quantile, "y": np.arange(20) % 2,
        "cross_val_score": cross_val_score, "LinearClassifier": river.LinearClassifier,
    }  # fmt: skip
    assert len(lines()) >= 20
    for line in lines():
        if line.startswith("forel "):
            small = ["--bits", "6"] if line.startswith("forel train ") and "--start" not in line else []
            done = CliRunner().invoke(app, [*shlex.split(line)[1:], *small])
            assert done.exit_code == 0, f"{line}: {done.output}"
        else:
            exec(line, names)
