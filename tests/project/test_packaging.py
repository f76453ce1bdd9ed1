"""Source distribution and wheel: they build, contain the right files, install and run; metadata agree with CI."""

import importlib.util
import os
import pathlib
import re
import subprocess
import sys
import tarfile
import tomllib
import venv
import zipfile

import pytest
import yaml

import forel

ROOT = pathlib.Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
VERSION = forel.__version__


# Nothing is imported from folders that the caller's environment names.
ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}


def run(*command, cwd):
    command = list(map(str, command))
    done = subprocess.run(command, capture_output=True, text=True, cwd=cwd, timeout=300, env=ENVIRONMENT, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def dist(tmp_path_factory):
    """Build both from the checkout, the wheel from the unpacked source distribution, without network access."""
    pytest.importorskip("build.env")  # a folder named build, which `make run` creates, is not the package
    pytest.importorskip("hatchling")
    folder = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, ROOT, cwd=folder)
    return folder


@pytest.fixture(scope="module")
def wheel(dist):
    return dist / f"forel-{VERSION}-py3-none-any.whl"


@pytest.mark.slow
def test_wheel_has_the_package_and_nothing_else(wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        entry_points = archive.read(f"forel-{VERSION}.dist-info/entry_points.txt").decode()
        metadata = archive.read(f"forel-{VERSION}.dist-info/METADATA").decode()
    assert {name.partition("/")[0] for name in names} == {"forel", f"forel-{VERSION}.dist-info"}
    assert f"forel-{VERSION}.dist-info/licenses/LICENSE" in names
    sources = [p for p in (ROOT / "src" / "forel").rglob("*") if p.is_file() and "__pycache__" not in p.parts]
    assert {str(path.relative_to(ROOT / "src")) for path in sources} <= names
    assert {"forel/py.typed", "forel/report/style.css"} <= names
    assert not [name for name in names if "test" in pathlib.PurePath(name).name]
    assert "[console_scripts]\nforel = forel.cli:main" in entry_points
    assert f"Requires-Python: {PROJECT['requires-python']}\n" in metadata


@pytest.mark.slow
def test_source_distribution_can_be_tested_and_holds_no_local_files(dist):
    with tarfile.open(dist / f"forel-{VERSION}.tar.gz") as archive:
        names = {name.removeprefix(f"forel-{VERSION}/") for name in archive.getnames()}
    needed = "LICENSE README.md CHANGELOG.md SECURITY.md Makefile constraints.txt pyproject.toml conftest.py mkdocs.yml"
    assert set(needed.split()) <= names
    folders = ("src/forel", "tests", "docs", "examples", "benchmarks", "reproduce", "website")
    tracked = run("git", "ls-files", *folders, cwd=ROOT).splitlines() if (ROOT / ".git").exists() else []
    assert set(tracked) <= names
    tops = {name.partition("/")[0] for name in names}
    assert not tops & {"build", "dist", "figures", ".venv", ".git"}


@pytest.mark.slow
def test_the_installed_wheel_does_not_use_the_repository(wheel, tmp_path):
    """Dependencies come from the running environment by a .pth file, which is searched after the wheel's files."""
    place = tmp_path / "venv"
    venv.create(place, symlinks=True)
    python = place / "bin" / "python"
    run(sys.executable, "-m", "pip", "--python", python, "install", "--no-deps", "--no-index", wheel, cwd=tmp_path)
    shown = run(python, "-c", "import forel; print(forel.__file__, forel.__version__)", cwd=tmp_path)
    file, version = shown.split()
    assert pathlib.Path(file).is_relative_to(place)
    assert version == VERSION
    dependencies = {str(pathlib.Path(importlib.util.find_spec(name).origin).parents[1]) for name in ("typer", "numpy")}
    pathlib.Path(file).parents[1].joinpath("dependencies.pth").write_text("\n".join(sorted(dependencies)) + "\n")
    assert run(place / "bin" / "forel", "--version", cwd=tmp_path) == f"forel {VERSION}\n"
    code = "import forel; print(forel.__file__, forel.train([{'a': 1.0, 'y': 1}], label='y', bits=4).report.rows)"
    assert run(python, "-c", code, cwd=tmp_path).split() == [file, "1"]


def test_workflow_tests_every_supported_python():
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text())
    matrix = workflow["jobs"]["test"]["strategy"]["matrix"]
    prefix = "Programming Language :: Python :: 3."
    supported = [c.rpartition(" ")[2] for c in PROJECT["classifiers"] if c.startswith(prefix)]
    assert matrix["python"] == supported
    assert {job["python"] for job in matrix["include"]} <= set(supported)
    assert workflow["jobs"]["test"]["steps"][-1]["run"].startswith("make lint test")


def test_pre_commit_runs_the_tools_of_lint():
    config = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())
    makefile = (ROOT / "Makefile").read_text()
    for hook in config["repos"][0]["hooks"]:
        tool = pathlib.PurePath(hook["entry"].split()[0])
        assert tool.parent == pathlib.PurePath(".venv/bin")
        assert f"$(BIN)/{tool.name}" in makefile


def test_changelog_has_a_dated_entry_for_this_version():
    changelog = (ROOT / "CHANGELOG.md").read_text()
    headings = re.findall(r"^## (.*)$", changelog, re.MULTILINE)
    assert headings[0] == "Unreleased"
    dated = dict(re.fullmatch(r"(\d+\.\d+\.\d+) - (\d{4}-\d\d-\d\d)", heading).groups() for heading in headings[1:])
    assert VERSION in dated
    assert f"date-released: {dated[VERSION]}\n" in (ROOT / "CITATION.cff").read_text()
