"""The key of a user's loss has everything that it is compiled from, or there is no key."""

import importlib
import json
import os
import subprocess
import sys

import numba
import numpy as np
import pytest
from numba import extending

from forel.jit.key import contents

LOSSES = {
    "a function of another module": """
        from helpers import twice
        import numba
        @numba.njit
        def loss(margin, label):
            return twice(margin - label), twice(margin - label)
    """,
    "a constant of its module": """
        import numba
        from helpers import SCALE
        @numba.njit
        def loss(margin, label):
            return SCALE * (margin - label) ** 2, SCALE * (margin - label)
    """,
    "a constant of another module": """
        import helpers
        import numba
        @numba.njit
        def loss(margin, label):
            return helpers.SCALE * (margin - label) ** 2, helpers.SCALE * (margin - label)
    """,
    "a closure": """
        import numba
        import helpers
        def make(scale):
            @numba.njit
            def loss(margin, label):
                return scale * (margin - label) ** 2, scale * (margin - label)
            return loss
        loss = make(helpers.SCALE)
    """,
}
HELPERS = """
    import numba
    SCALE = {0}
    @numba.njit
    def twice(x):
        return {0} * x
"""
LEARN = """
import json, sys
sys.path.insert(0, sys.argv[1])
import numpy as np
from losses_of_a_user import loss
from forel.learner.learner import Learner
from forel.learner.settings import Settings
model = Learner(2, Settings(loss, alpha=0.1))
model.learn(np.eye(2), [0, 1])
print(json.dumps(model.weights.ravel().tolist()))
"""


def write(folder, name, text, *arguments):
    lines = [line[4:] for line in text.strip("\n").splitlines()]
    indent = len(lines[0]) - len(lines[0].lstrip())
    (folder / f"{name}.py").write_text("\n".join(line[indent:] for line in lines).format(*arguments))


@pytest.fixture
def imported(tmp_path, monkeypatch):
    """Return a function that imports the loss anew, after its module or another one was changed."""
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    def fresh(text, number):
        write(tmp_path, "helpers", HELPERS, number)
        write(tmp_path, "losses_of_a_user", text)
        for name in ("helpers", "losses_of_a_user"):
            sys.modules.pop(name, None)
        importlib.invalidate_caches()
        return importlib.import_module("losses_of_a_user").loss

    yield fresh
    for name in ("helpers", "losses_of_a_user"):
        sys.modules.pop(name, None)


@pytest.mark.parametrize("text", LOSSES.values(), ids=LOSSES)
def test_the_key_changes_with_what_a_loss_reaches(text, imported):
    first, same, other = (contents(imported(text, number)) for number in ("2.0", "2.0", "3.0"))
    assert first is not None
    assert first == same != other


def test_options_of_compilation_are_a_part():
    def loss(margin, label):
        return np.exp(margin), label

    plain, fast = numba.njit(loss), numba.njit(fastmath=True)(loss)
    assert contents(loss) != contents(plain) != contents(fast) != contents(loss)


TABLE = {"x": 1}


@extending.register_jitable
def replaced(x):
    return x


def test_what_numba_may_compile_otherwise_has_no_key():
    assert contents(lambda x: replaced(x)) is None
    assert contents(lambda x: TABLE) is None
    assert contents(len) is None


@pytest.mark.slow
def test_a_changed_loss_is_learned_with(tmp_path):
    environment = {**os.environ, "FOREL_CACHE": str(tmp_path / "cache"), "PYTHONDONTWRITEBYTECODE": "1"}
    found = []
    for number in ("1.0", "3.0", "1.0"):
        write(tmp_path, "helpers", HELPERS, number)
        write(tmp_path, "losses_of_a_user", LOSSES["a function of another module"])
        command = [sys.executable, "-c", LEARN, str(tmp_path)]
        done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
        found.append(json.loads(done.stdout))
    assert found[0] == found[2]
    assert found[1][1] == pytest.approx(3 * found[0][1], rel=0.5)
    assert found[1] != found[0]
