"""Private names of numba: without any of them forel imports, compiles and learns, and gives the same numbers."""

import json
import os
import subprocess
import sys
from types import ModuleType

import pytest

from forel.jit import disabled
from forel.jit.private import EXTENSIONS, NAMES

REMOVE = """
import json, sys
from forel.jit import private
name = sys.argv[1]
if name in private.NAMES:
    private.NAMES[name] += "_gone"
elif name:
    found = private.extension
    def missing(each):
        if each == name:
            raise ImportError(each)
        return found(each)
    private.extension = missing
import numpy as np
import forel
"""
COUNT = """
from forel.learner.kernels.kernel import routine
found, labels = np.empty((2, 9)), np.arange(9.0) % 2
routine("counting", "log_losses")(np.linspace(-3.0, 3.0, 9), labels, *found)
print(json.dumps(found.tolist()))
"""
LEARN = """
from forel.learner.learner import Learner
from forel.learner.settings import Settings
model = Learner(3, Settings(alpha=0.1))
model.learn(np.eye(3), [0, 1, 1])
print(json.dumps(model.weights.ravel().tolist()))
"""
OF_KERNELS = ("uncounted", "memory", "populate_array")


def result(script, name, cache):
    """Return what a process prints without a private name."""
    done = subprocess.run(
        [sys.executable, "-c", REMOVE + script, name],
        capture_output=True,
        text=True,
        env={**os.environ, "FOREL_CACHE": str(cache)},
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.slow
@pytest.mark.parametrize("name", [*sorted(NAMES.keys() - set(OF_KERNELS)), *EXTENSIONS])
def test_functions_are_compiled_without_a_private_name(name, tmp_path):
    expected = result(COUNT, "", tmp_path / "cache")
    assert result(COUNT, name, tmp_path / "cache") == expected
    assert result(COUNT, name, tmp_path / "empty") == expected


@pytest.mark.slow
@pytest.mark.parametrize("name", OF_KERNELS)
def test_models_learn_without_a_private_name(name, tmp_path):
    assert result(LEARN, name, tmp_path) == pytest.approx(result(LEARN, "", tmp_path), rel=1e-6)


def test_numba_may_be_imported_by_another_thread(monkeypatch):
    monkeypatch.setitem(sys.modules, "numba.core.config", ModuleType("config"))  # as it is until its code has run
    monkeypatch.delenv("NUMBA_DISABLE_JIT", raising=False)
    assert not disabled()
