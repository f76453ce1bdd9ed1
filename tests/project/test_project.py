"""The project as a newcomer meets it: commands as real processes, examples, the promises of the README."""

import os
import pathlib
import subprocess
import sys
import tomllib

import pytest

ROOT = pathlib.Path(__file__).parents[2]
DATA = pathlib.Path(os.environ.get("FOREL_DATA", ROOT.parent / "shared" / "data"))
FOREL = [sys.executable, "-m", "forel"]


def run(*command, cwd=ROOT, **environment):
    return subprocess.run(
        command, capture_output=True, text=True, cwd=cwd, timeout=120, env={**os.environ, **environment}, check=False
    )


# What an example that makes its own data must come to.
SAYS = {
    "adversary": ("7999.50     T^1.00", "T^0.50", "void, because the gradient of round 1 has norm 10"),
    "own_algorithm": ("void   the point of round 4 is not an argmin",),
    "own_loss": ("the truth is 4.3 4.8 5.3",),
    "text": ("good", "words kept"),
}


@pytest.mark.parametrize("example", sorted((ROOT / "examples").glob("*.py")), ids=lambda p: p.name)
def test_examples_run(example):
    done = run(sys.executable, str(example))
    assert done.returncode == 0, done.stderr
    assert done.stdout
    missing = [words for words in SAYS.get(example.stem, ()) if words not in done.stdout]
    assert not missing, done.stdout


WITH_DATA = {
    "portfolio": (
        "nyse_o.csv.gz",
        ["54.14  best stock", "14.50  equal parts bought and held", "250.60  best constant"],
    ),
    "text": ("amazon_books.vw.gz", ["disappointing -0.73"]),
    "electricity": ("elec2.csv.gz", ["Exponential weights: within 0.000059 per example of the best of 14 experts"]),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", WITH_DATA)
def test_examples_say_what_they_found_in_their_data(name):
    table, lines = WITH_DATA[name]
    if not (DATA / table).exists():
        pytest.skip(f"needs {table}, in shared/data next to the checkout or where FOREL_DATA says")
    done = run(sys.executable, str(ROOT / "examples" / f"{name}.py"), str(DATA / table))
    assert done.returncode == 0, done.stderr
    assert all(line in done.stdout for line in lines), done.stdout


def test_help_lists_the_commands_and_version_is_the_packages():
    assert "methods" in run(*FOREL, "--help").stdout
    assert run(*FOREL, "--version").stdout.startswith("forel 0.")


def test_methods_shows_how_a_combination_is_solved():
    done = run(*FOREL, "methods", "entropy", COLUMNS="100")
    assert "softmax" in done.stdout
    assert "dual exponent" not in done.stdout


def test_a_wrong_name_is_a_sentence_on_stderr_and_exit_code_1():
    done = run(*FOREL, "methods", "nosuch")
    assert done.returncode == 1
    assert "forel: geometry: got 'nosuch', expected part of one of Euclidean" in done.stderr
    assert "Traceback" not in done.stderr


def test_flags_of_vw_are_in_the_help_and_words_can_be_completed():
    shown = run(*FOREL, "train", "--help", COLUMNS="150").stdout
    flags = "-d -f -i -t -p -b -q --l1 --l2 --ftrl_alpha --ftrl_beta --passes --link --noconstant --holdout_off"
    assert not [flag for flag in flags.split() if flag not in shown]
    assert "For Vowpal Wabbit users" in shown
    done = run(*FOREL, _FOREL_COMPLETE="complete_bash", COMP_WORDS="forel tr", COMP_CWORD="1")
    assert done.stdout.split() == ["train"]
    done = run(*FOREL, _FOREL_COMPLETE="complete_bash", COMP_WORDS="forel train --ftrl", COMP_CWORD="2")
    assert set(done.stdout.split()) == {"--ftrl", "--ftrl_alpha", "--ftrl_beta"}


def test_help_imports_nothing_heavy():
    code = (
        "import sys, forel.doors.cli; print(sorted({'numpy', 'scipy', 'cvxpy', 'numba', 'pyarrow'} & set(sys.modules)))"
    )
    assert run(sys.executable, "-c", code).stdout.strip() == "[]"


def test_the_package_alone_imports_neither_numba_nor_river():
    code = "import sys, forel; print(sorted({'numpy', 'numba', 'river', 'narwhals'} & set(sys.modules)))"
    assert run(sys.executable, "-c", code).stdout.strip() == "[]"


def test_no_file_names_a_package_registry():
    places = [p for p in run("git", "ls-files").stdout.split() if not p.endswith("LICENSE")]
    needles = ["py" + "pi.org", "python" + "hosted"]  # in two parts, so as not to find itself
    assert not [p for p in places if any(n in (ROOT / p).read_text(errors="ignore") for n in needles)]


def test_what_to_cite_is_this_version():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    citation = (ROOT / "CITATION.cff").read_text()
    assert f"version: {project['version']}\n" in citation
    assert f"license: {project['license']}\n" in citation
