"""``make release-check``: the files in dist install and work, with each supported Python that is present.

The wheel is installed with its dependencies, and then trains, evaluates and predicts offline, in another folder. The
source distribution is built where no compiler can be found.
"""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).parents[1]
VERSIONS = ("3.11", "3.12", "3.13", "3.14")
# Nothing is imported from the repository, and a process that tries to reach a network meets a closed port.
OFFLINE = {
    **{name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "FOREL"))},
    **dict.fromkeys(("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"), "http://127.0.0.1:9"),
}
TRAIN = "import forel; print(forel.train([{'a': 1.0, 'y': 1}] * 9, label='y', bits=4).report.rows, forel.__file__)"


def run(*command, cwd, env=OFFLINE):
    done = subprocess.run(list(map(str, command)), cwd=cwd, env=env, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


def interpreters():
    """The supported interpreters that start, by version; a name on the path may be a stub."""
    asked = "import sys; print('{}.{}'.format(*sys.version_info))"
    given, found = {run(path, "-c", asked, cwd=ROOT).strip(): path for path in sys.argv[1:]}, {}
    for version in VERSIONS:
        path = given.get(version) or shutil.which(f"python{version}")
        works = path and subprocess.run([path, "-c", "import venv"], capture_output=True, check=False).returncode == 0
        print(f"Python {version}: {path if works else 'not present'}")
        if works:
            found[version] = path
    return found


def check(version, python, wheel, folder):
    """Install the wheel into a new environment, and use it."""
    place = folder / version
    run(python, "-m", "venv", place, cwd=folder)
    constraints = ("-c", ROOT / "constraints.txt")
    pip = (place / "bin" / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *constraints)
    run(*pip, wheel, cwd=folder, env={**os.environ, "PYTHONPATH": ""})
    work, forel = folder / f"work-{version}", place / "bin" / "forel"
    work.mkdir()
    env = {**OFFLINE, "FOREL_CACHE": str(work / "cache")}
    run(forel, "dev", "generate", "ctr", "--rows", 5000, "--output", "clicks.vw", cwd=work, env=env)
    shown = run(forel, "train", "clicks.vw", "--model", "m.forel", "--quiet", cwd=work, env=env)
    run(forel, "evaluate", "clicks.vw", "--model", "m.forel", cwd=work, env=env)
    lines = run(forel, "predict", "clicks.vw", "--model", "m.forel", cwd=work, env=env).splitlines()
    if len(lines) != 5000 or not all(0 <= float(line.split()[0]) <= 1 for line in lines):
        sys.exit(f"forel predict wrote {len(lines)} lines, expected 5,000 probabilities")
    rows, file = run(place / "bin" / "python", "-c", TRAIN, cwd=work, env=env).split()
    if rows != "9" or not pathlib.Path(file).is_relative_to(place):
        sys.exit(f"trained on {rows} rows with {file}, expected 9 with the installed wheel")
    compiled = [line.strip(" │") for line in shown.splitlines() if "compil" in line]
    print(f"Python {version}: the wheel trains, evaluates and predicts offline; {' '.join(compiled)}")
    return place


def check_source(place, sdist, folder):
    """Build the source distribution where no compiler can be found, with the build backend that is installed."""
    python = place / "bin" / "python"
    pip = (python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
    run(*pip, "hatchling", cwd=folder, env={**os.environ, "PYTHONPATH": ""})
    env = {**OFFLINE, "PATH": str(place / "bin"), "CC": "false", "CXX": "false"}
    run(*pip, "--no-index", "--no-deps", "--no-build-isolation", "--force-reinstall", sdist, cwd=folder, env=env)
    rows, _ = run(python, "-c", TRAIN, cwd=folder, env={**env, "FOREL_CACHE": str(folder / "cache")}).split()
    print(f"The source distribution builds without a compiler, and trains on {rows} rows")


def main():
    dist = ROOT / "dist"
    version = run(sys.executable, "-c", "import forel; print(forel.__version__)", cwd=ROOT / "src").strip()
    wheel, sdist = dist / f"forel-{version}-py3-none-any.whl", dist / f"forel-{version}.tar.gz"
    for file in (wheel, sdist):
        if not file.exists():
            sys.exit(f"{file.relative_to(ROOT)} is missing; run make build")
    found = interpreters()
    with tempfile.TemporaryDirectory() as folder:
        places = [check(*one, wheel, pathlib.Path(folder)) for one in found.items()]
        check_source(places[0], sdist, pathlib.Path(folder))
    print(f"forel {version} installs and works with Python {', '.join(found)}")


if __name__ == "__main__":
    main()
