"""Source distribution and wheel: they build, contain the right files, install and run; metadata agree with CI."""

import email
import importlib.util
import json
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


@pytest.mark.slow
def test_the_long_description_renders(wheel):
    """As the index renders it: every link resolves in the source distribution, and no Markdown is left over."""
    markdown = pytest.importorskip("markdown")
    with zipfile.ZipFile(wheel) as archive:
        metadata = email.message_from_bytes(archive.read(f"forel-{VERSION}.dist-info/METADATA"))
    assert metadata["Description-Content-Type"] == "text/markdown"
    assert metadata["Summary"] == PROJECT["description"]
    html = markdown.markdown(metadata.get_payload(), extensions=["tables", "fenced_code"])
    prose = re.sub(r"<(pre|code)\b.*?</\1>", "", html, flags=re.DOTALL)
    assert not re.search(r"\]\(|^\s*\||```|^#", prose, re.MULTILINE)
    for link in re.findall(r'(?:href|src)="([^"#]+)', html):
        assert link.startswith("https://") or (ROOT / link).exists(), link


def test_a_release_has_templates_and_a_policy():
    for name in ("bug.yml", "idea.yml"):
        form = yaml.safe_load((ROOT / ".github" / "ISSUE_TEMPLATE" / name).read_text())
        assert {"name", "description", "body"} <= set(form)
        assert len({field["id"] for field in form["body"]}) == len(form["body"])
    assert "make lint test" in (ROOT / ".github" / "pull_request_template.md").read_text()
    assert "## What is public" in (ROOT / "CONTRIBUTING.md").read_text()
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert (citation["version"], citation["license"]) == (VERSION, PROJECT["license"])


def dockerfile():
    """Instructions as pairs of keyword and argument, with continued lines joined."""
    text = re.sub(r"^#.*\n", "", (ROOT / "Dockerfile").read_text(), flags=re.MULTILINE)
    lines = [line for line in re.sub(r"\\\n\s*", "", text).splitlines() if line.strip()]
    return [tuple(line.split(maxsplit=1)) for line in lines]


def test_the_dockerfile_keeps_to_the_rules():
    instructions = dockerfile()
    arguments = {}
    for keyword, argument in instructions:
        assert keyword in {"FROM", "COPY", "RUN", "USER", "ENV", "WORKDIR", "ENTRYPOINT", "CMD"}
        arguments.setdefault(keyword, []).append(argument)
    image, tag = arguments["FROM"][0].split(":")
    assert (image, tag) == ("python", "3.13-slim")
    assert f"Programming Language :: Python :: {tag.removesuffix('-slim')}" in PROJECT["classifiers"]
    assert arguments["COPY"] == ["dist/forel-*.whl /tmp/"]  # what make build writes
    extras = re.search(r"\[([\w,]+)\]", arguments["RUN"][0])[1].split(",")
    assert set(extras) <= set(PROJECT["optional-dependencies"])
    assert "--no-cache-dir" in arguments["RUN"][0]
    users = [i for i, (keyword, argument) in enumerate(instructions) if keyword == "USER" and argument != "root"]
    assert users
    assert users[-1] < [keyword for keyword, _ in instructions].index("ENTRYPOINT")
    assert all(isinstance(json.loads(arguments[keyword][-1]), list) for keyword in ("ENTRYPOINT", "CMD"))


def test_commands_of_the_dockerfile_run_outside_a_container(tmp_path):
    """Those of forel: what compiles when the image is built, and what a container starts."""
    parts = dict(dockerfile())
    entry, default = json.loads(parts["ENTRYPOINT"]), json.loads(parts["CMD"])
    start = [sys.executable, *entry[1:]]
    assert "Usage" in run(*start, *default, cwd=tmp_path)
    built = [
        argument.split()
        for keyword, argument in dockerfile()
        if keyword == "RUN" and argument.startswith("python -m forel")
    ]
    for command in built:
        assert "Usage" in run(sys.executable, *command[1:], "--help", cwd=tmp_path)
    (tmp_path / "clicks.csv").write_text("site,click\n" + "news,1\nshop,0\n" * 50)
    shown = re.search(r"`docker run .* forel (train .*)`", (ROOT / "Dockerfile").read_text())[1]
    assert "AUC" in run(*start, *shown.split(), cwd=tmp_path)
    assert (tmp_path / "m.forel").exists()
