"""Every term that commands print is in the glossary: titles of tables, first cells, and words before a colon."""

import pathlib
import re

import pytest
from typer.testing import CliRunner

from forel.cli.app import app

ROOT = pathlib.Path(__file__).parents[2]
GLOSSARY = (ROOT / "docs" / "guide" / "glossary.md").read_text()
TERMS = {
    term.strip()
    for line in re.findall(r"^\| (.+?) \| ", GLOSSARY, re.MULTILINE)
    for term in [line, *re.split("[,;] ", line), *line.split("; ")]  # some lines explain several
}
# Content of the data, and what says what it is: numbers, names, paths.
NOT_TERMS = re.compile(r"[\d≥+.-]|^$|^(m|city|age|y|forel|[abc]|row \d|\w+\.(csv|forel))$")


def run(*arguments):
    done = CliRunner(env={"COLUMNS": "250", "NO_COLOR": "1"}).invoke(app, list(map(str, arguments)))
    assert done.exit_code == 0, (arguments, done.output)
    return done.stdout


def printed_terms(text):
    """Cells of the heads of tables, first cells of tables whose head begins empty, and words before a colon."""
    empty = False
    for line in text.splitlines():
        cells = [cell.strip() for cell in re.split("[┃│]", line)][1:-1]
        if line.startswith("┃"):
            empty = cells[0] == ""
            yield from cells
        elif line.startswith("│") and empty:
            yield cells[0]
        elif found := re.match(r"([A-Za-z][^:()]{2,30}): ", line):
            yield found[1]


@pytest.fixture
def table(tmp_path, monkeypatch, interpreted):
    monkeypatch.chdir(tmp_path)
    rows = [f"{'Rome' if k % 3 else 'Oslo'},{k % 7},{k % 2 if k % 5 else k % 3 % 2},{k % 4 + 1}" for k in range(150)]
    pathlib.Path("t.csv").write_text("\n".join(["city,age,y,count", *rows]) + "\n")
    kinds = [f"{'Rome' if k % 3 else 'Oslo'},{'abc'[k % 3]}" for k in range(90)]
    pathlib.Path("kinds.csv").write_text("\n".join(["city,y", *kinds]) + "\n")
    return "t.csv"


RUNS = {
    "two classes": ("t.csv", "--label", "y", "--certificate", "--names", "--passes", "2", "--holdout", "4"),
    "numbers": ("t.csv", "--label", "count", "--loss", "squared"),
    "counts": ("t.csv", "--label", "count", "--loss", "poisson"),
    "several classes": ("kinds.csv", "--label", "y", "--loss", "softmax"),
}


@pytest.mark.parametrize("kind", RUNS)
def test_every_printed_term_is_in_the_glossary(kind, table):
    file, *options = RUNS[kind]
    model = ("--model", "m", "--bits", "6", "--quiet")
    shown = run("peek", file) + run("train", file, *options, *model) + run("evaluate", file, "--model", "m")
    if kind == "two classes":
        shown += run("evaluate", file, "--model", "m", "--threshold", "f1")
    shown += run("inspect", "m", "--details") + run("explain", file, "--model", "m")
    found = {term for term in printed_terms(shown) if not NOT_TERMS.search(term)}
    assert {"rows", "weight", "feature"} <= found  # terms are found at all
    assert not found - TERMS, sorted(found - TERMS)


def test_summaries_end_with_the_page():
    module = (ROOT / "src" / "forel" / "cli" / "printing.py").read_text()
    page = re.search(r"What do these mean\? (docs/\S+\.md)", module)[1]
    assert (ROOT / page).read_text() == GLOSSARY
