"""``--slice``: the tables, JSON and report of training have the same numbers."""

import html
import json
import re

import pytest

from forel.learner.settings import Settings
from forel.report import page
from forel.training.history import History
from forel.training.train import train
from tests.interfaces.test_cli import FEW, run

EVIL = "<b>[red]&"
ROWS = [(EVIL if k % 3 else "a", (k * k + k // 8) % 5 % 2) for k in range(60)]


@pytest.fixture
def rows(tmp_path, interpreted):
    path = tmp_path / "a.csv"
    path.write_text("site,y\n" + "".join(f"{site},{label}\n" for site, label in ROWS))
    return path


def test_tables_and_json_have_the_rows_of_each_value(rows, tmp_path):
    model = tmp_path / "m.forel"
    arguments = ("train", rows, "--label", "y", "--alpha", 0.3, *FEW, "--quiet", "--slice", "site")
    shown = run(*arguments, COLUMNS="200").stdout
    assert re.search(rf"│ {re.escape(EVIL)} +│ +40 │", shown)
    assert re.search(r"│ a +│ +20 │", shown)
    found = json.loads(run(*arguments, "--json", "--model", model).stdout)["slices"]
    assert [(one["value"], one["rows"]) for one in found[0]["values"]] == [(EVIL, 40), ("a", 20)]
    for one in found[0]["values"]:
        labels = [label for site, label in ROWS if site == one["value"]]
        assert one["mean_label"] == pytest.approx(sum(labels) / len(labels))
        assert f"{one['loss']:.6f}" in shown
    measured = json.loads(run("evaluate", rows, "--model", model, "--slice", "site", "--json").stdout)
    assert sum(one["rows"] for one in measured["slices"][0]["values"]) == 60
    shown = run("evaluate", rows, "--model", model, "--slice", "site", COLUMNS="200").stdout
    assert re.search(rf"│ {re.escape(EVIL)} +│ +40 │", shown)


@pytest.mark.usefixtures("interpreted")
def test_the_report_has_the_metrics_of_each_value():
    history = History()
    rows = [{"site": site, "y": label} for site, label in ROWS]
    trained = train(rows, Settings(alpha=0.3), label="y", bits=6, slices=["site"], progress=history)
    history.close()
    text = page(trained, history)
    (table,) = trained.training.slices
    for one in table.slices:
        assert f'<th scope="row">{html.escape(one.value, quote=False)}</th>' in text
        assert f'value="{one.report.loss!r}"' in text
    assert EVIL not in text


def test_no_number_is_cut_on_a_narrow_terminal(rows):
    arguments = ("train", rows, "--label", "y", "--alpha", 0.3, *FEW, "--quiet", "--slice", "site")
    shown = run(*arguments, COLUMNS="40").stdout
    assert "…" not in shown
