"""Documents: shell blocks print what is shown, links resolve, figures have code; and the hooks that build the site.

Python blocks are doctests, which pytest runs directly.
"""

import os
import pathlib
import re
import shlex
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from forel.cli.app import app

ROOT = pathlib.Path(__file__).parents[2]
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)\s#]*)(?:#([^)\s]*))?\)")
SPECIAL = re.compile(r"[|<>;&*?$`(]")  # what only a shell can run
HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)


def name(path):
    return str(path.relative_to(ROOT))


def blocks(page, kind):
    return [body for language, body in BLOCK.findall(page.read_text()) if language == kind]


every_page = pytest.mark.parametrize("page", PAGES, ids=name)


@pytest.fixture
def shell(tmp_path, monkeypatch):
    """Run commands in an empty folder, with this ``forel`` and a ``make`` that only prints its commands."""
    tools, folder = tmp_path / "tools", tmp_path / "here"
    folder.mkdir()
    tools.mkdir()
    commands = {
        "forel": f'exec {shlex.quote(sys.executable)} -m forel "$@"',
        "make": f'exec /usr/bin/env -i PATH=/usr/bin:/bin make -n -C {shlex.quote(str(ROOT))} "$@"',
    }
    for command, line in commands.items():
        (tools / command).write_text(f"#!/bin/sh\n{line}\n")
        (tools / command).chmod(0o755)
    environment = {**os.environ, "PATH": f"{tools}:{os.environ['PATH']}", "COLUMNS": "120"}

    def run(command):
        """Return exit code and output; ``forel`` by itself runs in this process, where kernels compile faster.

        Ray starts processes of this one, so that it has one of its own.
        """
        if " --ray " not in command and command.startswith("forel ") and not SPECIAL.search(command):
            monkeypatch.chdir(folder)
            done = CliRunner(env={"COLUMNS": "120"}).invoke(app, shlex.split(command)[1:])
            return done.exit_code, done.output
        done = subprocess.run(
            ["bash", "-c", command],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=folder,
            env=environment,
            timeout=120,
            check=False,
        )
        return done.returncode, done.stdout

    return run


@pytest.mark.slow
@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page, "console")], ids=name)
def test_shell_blocks_run_in_order_and_print_what_is_shown(page, shell):
    for block in blocks(page, "console"):
        printed = ""
        for line in block.splitlines():
            if line.startswith("$ "):
                code, output = shell(line.removeprefix("$ "))
                assert code == 0, (line, output)
                printed = " ".join(output.split())
            else:
                shown = ".*".join(re.escape(" ".join(part.split())) for part in line.split("..."))
                assert re.search(shown, printed), (line, printed)


@every_page
def test_every_block_runs_or_is_a_diagram(page):
    kinds = {language for language, _ in BLOCK.findall(page.read_text())}
    assert kinds <= {"python", "console", "text"}, "a block that no test runs"
    assert all(">>> " in body for body in blocks(page, "python"))


@every_page
def test_code_and_diagrams_are_not_wider_than_the_page(page):
    # At 1280 pixels the text column of the site is 930 wide, of which 32 are padding: 109 characters of 8.2 pixels.
    # Lines of console blocks wrap.
    lines = [line for kind in ("python", "text") for body in blocks(page, kind) for line in body.splitlines()]
    assert not [line for line in lines if len(line) > 100]


def anchor(heading):
    """Anchor of a heading on the site."""
    plain = re.sub(r"[^\w\s-]", "", heading.replace("`", "")).strip().lower()
    return re.sub(r"[-\s]+", "-", plain)


@every_page
def test_links_resolve(page):
    text = BLOCK.sub("", page.read_text())
    drawn = "figures/"  # drawn by the page's code, which another test checks
    for target, fragment in LINK.findall(text):
        if target.startswith(("http", drawn)):
            continue
        found = page if not target else (page.parent / target).resolve()
        assert found.exists(), f"{target} does not exist"
        if fragment and found.suffix == ".md":
            assert fragment in {anchor(h) for h in HEADING.findall(found.read_text())}, f"{target} has no #{fragment}"


@pytest.mark.parametrize(
    "page", [ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md", ROOT / "docs" / "design.md"], ids=name
)
def test_paths_in_the_text_exist(page):
    text = BLOCK.sub("", page.read_text())
    paths = re.findall(r"`([a-z]\w*(?:/\w+)*(?:/|\.py))`", text)
    assert not [path for path in paths if not any((base / path).exists() for base in (ROOT, ROOT / "src" / "forel"))]


@pytest.mark.parametrize("page", [page for page in PAGES if page.is_relative_to(ROOT / "docs")], ids=name)
def test_figures_are_drawn_by_the_code_above_them(page):
    text = page.read_text()
    for found in re.finditer(r"\]\(figures/(\w+)\.svg\)", text):
        assert f">>> def {found[1]}():\n" in text[: found.start()]


# `make lint` builds the site itself; these tests cover its hooks.


def test_figures_are_drawn_for_both_themes_at_their_position_in_the_page():
    figures = pytest.importorskip("website.figures")
    text = (
        ">>> from forel.theory import plot\n>>> def one():\n...     return plot.figure_4()\n\n"
        "![x](figures/one.svg)\n\n"
        ">>> plot = None\n>>> raise ValueError\nTraceback (most recent call last):\nValueError\n"
    )
    files = figures.drawn(text)
    assert sorted(files) == ["one.svg", "one_dark.svg"]
    assert files["one.svg"] != files["one_dark.svg"]
    with pytest.raises(LookupError, match="defines no function two"):
        figures.drawn("![x](figures/two.svg)")
    assert figures.shown("![x](figures/one.svg)").count("#only-") == 2


def test_formulas_become_mathml_or_raise():
    pytest.importorskip("latex2mathml")
    from website.formulas import mathml

    inline = r'<span class="arithmatex">\(\arg\min_x x &lt; 1\)</span>'
    assert mathml(f"<p>{inline}</p>").startswith("<p><math")
    assert "argmin" in mathml(inline)
    with pytest.raises(ValueError, match="expected LaTeX that has an equivalent in MathML"):
        mathml(r'<div class="arithmatex">\[\nosuchthing x\]</div>')


def test_docstrings_become_markdown():
    pytest.importorskip("griffe")
    from website.docstrings import markdown

    text = "Add.\n\nParameters\n----------\na, b : two\n    numbers\n\n>>> 1 + 1\n2\n\nSurvey: section 1"
    expected = "Add.\n\nSurvey: section 1\n\nParameters\n----------\na, b\n    two\n    numbers\n\n"
    assert markdown(text) == expected + "Examples\n--------\n>>> 1 + 1\n2"
    assert markdown("See :class:`ExpertMixture`.\n\n>>> 1\n1") == "See `ExpertMixture`.\n\n```pycon\n>>> 1\n1\n```"
    table = markdown("===== =====\n``a`` one\n``longer``  two\n===== =====")
    assert table == "|   |   |\n| --- | --- |\n| ``a`` | one |\n| ``longer`` | two |"


def test_the_reference_begins_with_the_names_used_most():
    reference = pytest.importorskip("website.reference")
    (title, path), *_ = reference.nav()[0].items()
    assert (title, path) == ("The API in use", "reference/api.md")
    text = reference.front()
    headings = re.findall(r"^## `(.*)`$", text, re.MULTILINE)
    assert headings[:4] == ["forel.train", "forel.load", "forel.Model", "forel.Settings"]
    assert "| `predict_one` | Return the prediction for one row" in text
    linked = set(re.findall(r"\]\(([\w.]+)\.md\)", text))
    assert linked <= set(reference.modules())
    assert max(map(len, re.search(r"```python\n(.*?)```", text, re.DOTALL)[1].splitlines())) <= 100


def test_the_reference_has_every_public_module():
    reference = pytest.importorskip("website.reference")
    pages = list(reference.modules())
    assert {"forel.learner.learner", "forel.theory.algorithms.ftrl", "forel.sklearn.estimators"} <= set(pages)
    assert not [p for p in pages if "._" in p]
    assert "::: forel.learner.learner" in reference.page("forel.learner.learner")
    assert "forel.theory.algorithms.ftrl.md" in reference.page("forel.theory.algorithms")
