"""The repository as a newcomer sees it: commands as real processes, examples, and rules that hold for all files."""

import os
import pathlib
import re
import runpy
import subprocess
import sys
import tomllib

import pytest

import forel

ROOT = pathlib.Path(__file__).parents[2]
DATA = pathlib.Path(os.environ.get("FOREL_DATA", ROOT.parent / "shared" / "data"))
FOREL = [sys.executable, "-m", "forel"]


def run(*command, cwd=ROOT, **environment):
    return subprocess.run(
        command, capture_output=True, text=True, cwd=cwd, timeout=120, env={**os.environ, **environment}, check=False
    )


# Output of examples that generate their own data.
EXPECTED = {
    "adversary": ("7999.50     T^1.00", "T^0.50", "void, because the gradient of round 1 has norm 10"),
    "own_algorithm": ("void   the point of round 4 is not an argmin",),
    "own_loss": ("the truth is 4.3 4.8 5.3",),
    "text": ("good", "words kept"),
}


ARGUMENTS = {"loop": ("--seconds", 4, "--port", 0)}


@pytest.mark.parametrize("example", sorted((ROOT / "examples").glob("*.py")), ids=lambda p: p.name)
def test_examples_run(example, printed_by):
    output = printed_by(example, *ARGUMENTS.get(example.stem, ()))
    assert output
    missing = [text for text in EXPECTED.get(example.stem, ()) if text not in output]
    assert not missing, output


@pytest.fixture
def printed_by(monkeypatch, capsys):
    """Run an example in this process, where kernels compile faster, and return what it prints."""

    def printed(example, *arguments):
        monkeypatch.setattr(sys, "argv", [str(example), *map(str, arguments)])
        runpy.run_path(str(example), run_name="__main__")
        return capsys.readouterr().out

    return printed


def test_an_example_runs_as_a_command():
    done = run(sys.executable, str(ROOT / "examples" / "clicks.py"))
    assert done.returncode == 0, done.stderr
    assert done.stdout


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
def test_examples_on_real_data_print_known_results(name, printed_by):
    table, lines = WITH_DATA[name]
    if not (DATA / table).exists():
        pytest.skip(f"needs {table} in ../shared/data or in the directory FOREL_DATA")
    output = printed_by(ROOT / "examples" / f"{name}.py", DATA / table)
    assert all(line in output for line in lines), output


def test_help_lists_commands_and_version_is_that_of_the_package():
    assert "inspect" in run(*FOREL, "--help").stdout
    assert run(*FOREL, "--version").stdout.startswith("forel 0.")


def test_invalid_name_prints_an_error_and_exits_with_2():
    done = run(*FOREL, "dev", "survey", "--only", "nosuch")
    assert done.returncode == 2
    assert "forel: --only: got 'nosuch', expected a number or a name such as 11" in done.stderr
    assert "Traceback" not in done.stderr


def test_help_lists_vw_flags_and_shell_completion_works():
    brief = run(*FOREL, "train", "--help", COLUMNS="150").stdout
    assert "--help-all" in brief
    assert "--ftrl_alpha  " not in brief
    assert 25 <= len(re.findall(r"^  -", brief, re.MULTILINE)) <= 32
    shown = run(*FOREL, "train", "--help-all", COLUMNS="150").stdout
    flags = "-d -f -i -t -p -b -q --l1 --l2 --ftrl_alpha --ftrl_beta --passes --link --noconstant --holdout_off"
    assert not [flag for flag in flags.split() if flag not in shown]
    assert "More for Vowpal Wabbit users:" in shown
    done = run(*FOREL, _FOREL_COMPLETE="complete_bash", COMP_WORDS="forel tr", COMP_CWORD="1")
    assert done.stdout.split() == ["train"]
    done = run(*FOREL, _FOREL_COMPLETE="complete_bash", COMP_WORDS="forel train --ftrl", COMP_CWORD="2")
    assert set(done.stdout.split()) == {"--ftrl", "--ftrl_alpha", "--ftrl_beta"}


def test_help_imports_nothing_heavy():
    code = "import sys, forel.cli; print(sorted({'numpy', 'scipy', 'cvxpy', 'numba', 'pyarrow'} & set(sys.modules)))"
    assert run(sys.executable, "-c", code).stdout.strip() == "[]"


def test_import_of_the_package_loads_neither_numba_nor_river():
    code = "import sys, forel; print(sorted({'numpy', 'numba', 'river', 'narwhals'} & set(sys.modules)))"
    assert run(sys.executable, "-c", code).stdout.strip() == "[]"


def test_train_command_imports_numba_only_to_compile():
    heavy = "{'numba', 'scipy', 'sklearn', 'pyarrow'}"
    code = f"import sys, forel.cli.train, forel.training.train; print(sorted({heavy} & set(sys.modules)))"
    assert run(sys.executable, "-c", code).stdout.strip() == "[]"


def test_makefile_refers_to_existing_files():
    makefile = (ROOT / "Makefile").read_text()
    assert not [p for p in re.findall(r"(?:tests|benchmarks)/[\w/]+\.py", makefile) if not (ROOT / p).exists()]


def test_no_file_names_a_package_registry():
    places = [p for p in run("git", "ls-files").stdout.split() if not p.endswith("LICENSE")]
    needles = ["py" + "pi.org", "python" + "hosted"]  # split, so that this file does not match
    assert not [p for p in places if any(n in (ROOT / p).read_text(errors="ignore") for n in needles)]


def test_citation_has_this_version_and_license():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    citation = (ROOT / "CITATION.cff").read_text()
    assert f"version: {forel.__version__}\n" in citation
    assert f"license: {project['license']}\n" in citation
