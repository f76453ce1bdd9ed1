"""Models under threads: the fuzzer in a separate process, and the guards of copies."""

import copy
import os
import pickle
import signal
import threading

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


def exit_code_of_child(model):
    """Fork; the child predicts, and is killed if it hangs."""
    child = os.fork()
    if not child:
        signal.alarm(120)
        try:
            ok = np.isfinite(model.margins(X)).all()
            os._exit(0 if ok else 1)
        except RuntimeError as error:
            os._exit(2 if "forked while another thread" in str(error) else 3)
        finally:
            os._exit(4)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_child_forked_while_another_thread_learns_predicts_or_raises():
    model, stop = Learner(3, Settings(alpha=(0.1, 1.0))), threading.Event()
    model.learn(X, Y)
    model.margins(X)

    def learn():
        while not stop.is_set():
            model.learn(X, Y)

    thread = threading.Thread(target=learn)
    thread.start()
    try:
        assert {exit_code_of_child(model) for _ in range(8)} <= {0, 2}
    finally:
        stop.set()
        thread.join()
    assert exit_code_of_child(model) == 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_model_that_a_thread_was_changing_raises_in_the_child():
    model, other, begun, stop = Learner(3, Settings()), Learner(3, Settings()), threading.Event(), threading.Event()

    def change():
        with model._lock.writing():
            begun.set()
            stop.wait()

    thread = threading.Thread(target=change)
    thread.start()
    begun.wait()
    try:
        assert (exit_code_of_child(model), exit_code_of_child(other)) == (2, 0)
    finally:
        stop.set()
        thread.join()
    assert exit_code_of_child(model) == 0


class Reading:
    """An attribute whose copy reads a cached property of settings for the first time, as another thread may."""

    settings = None

    def __reduce__(self):
        assert Reading.settings.noise_key
        return Reading, ()


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))], ids=["copy", "pickle"])
def test_settings_are_copied_while_another_thread_reads_them(copied):
    settings = Settings(seed=3)
    object.__setattr__(settings, "attribute", Reading())
    Reading.settings = settings
    assert copied(settings) == settings


@pytest.mark.parametrize("learn", ["learn", "progress"])
def test_settings_and_mixers_learn_rows_in_one_change(learn, interpreted):
    """Between two changes, other threads would see settings that have learned rows, and mixers that have not."""
    model = Learner(1, Settings(alpha=(0.1, 1.0)))
    before = model._lock.version
    getattr(model, learn)(np.ones((5, 1)), [1] * 5)
    assert model._lock.version == before + 2
