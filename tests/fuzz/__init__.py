"""Fuzzers: each module has ``run(seconds, seed)``, which prints what it tried, and a ``main`` with ``--seconds``."""

import os
import pathlib
import subprocess
import sys

import forel

ROOT = pathlib.Path(__file__).parents[2]


def process(name: str, seconds: float) -> subprocess.CompletedProcess[str]:
    """Run a fuzzer in a separate process, so that a crash is only a failed test."""
    paths = [str(pathlib.Path(forel.__file__).parents[1]), str(ROOT)]
    return subprocess.run(
        [sys.executable, "-X", "faulthandler", "-m", f"tests.fuzz.{name}", "--seconds", str(seconds)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths), "FOREL_QUIET": "1", "OPENBLAS_NUM_THREADS": "1"},
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
