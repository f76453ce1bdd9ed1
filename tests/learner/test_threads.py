"""Models under threads: the fuzzer in a separate process, and the guards of copies."""

import copy
import pickle

import numpy as np
import pytest

from forel.learner.learner import Learner
from forel.learner.settings import Settings
from forel.sklearn import FTRLClassifier
from fuzz import process

pytest.importorskip("river", reason="river is an extra: pip install 'forel[river]'")


@pytest.mark.slow
def test_threads():
    done = process("threads", 3)
    assert done.returncode == 0, done.stderr
    assert "rounds_are_counted" in done.stdout


X, Y = np.eye(3, dtype=np.float32), np.array([0, 1, 1])


@pytest.mark.parametrize(
    "duplicate", [lambda m: pickle.loads(pickle.dumps(m)), copy.deepcopy, copy.copy], ids=["pickle", "deepcopy", "copy"]
)
@pytest.mark.parametrize(
    "make",
    [lambda: Learner(3, Settings()), lambda: Learner(3, Settings(alpha=(0.1, 1.0))), lambda: FTRLClassifier(alpha=1.0)],
    ids=["linear", "mixture", "classifier"],
)
def test_copies_have_a_guard_and_continue(make, duplicate):
    model = make()
    learn = (
        (lambda m: m.partial_fit(X, Y, classes=[0, 1]))
        if isinstance(model, FTRLClassifier)
        else lambda m: m.learn(X, Y)
    )
    learn(model)
    other = duplicate(model)
    learn(other)
    learn(other)
    held = getattr(other, "_model", other)
    assert held.rounds == 9
    assert other._lock.lock.acquire(blocking=False)
    other._lock.lock.release()
