"""Memory that is committed before a model is made: the same array is used, and results stay the same."""

from threading import Event, Timer

import numpy as np
import pytest

from forel.cli import memory
from forel.cli import train as command
from forel.data import ReadOptions
from forel.learner import aligned
from forel.learner.aligned import aligned_zeros, commit_ahead
from forel.learner.grid import default_grid
from forel.learner.mixture import Mixture
from forel.learner.settings import Settings
from tests.interfaces.test_cli import run

FLOAT = np.dtype(np.float32)
MANY = b"".join(b"%d |a x%d y%d:0.5\n" % (k % 2, k, k % 7) for k in range(300))


@pytest.fixture(autouse=True)
def small(monkeypatch, tmp_path):
    """Thresholds as for large sources, and a system with huge pages."""
    aligned._ahead.clear()
    (tmp_path / "huge").write_text("always [madvise] never\n")
    monkeypatch.setattr(memory, "HUGE_PAGES", tmp_path / "huge")
    monkeypatch.setattr(memory, "MIN_BYTES", 1000)
    monkeypatch.setattr(memory, "available_cores", lambda: 2)
    yield
    aligned._ahead.clear()


def test_zeros_are_the_ones_that_were_committed_and_only_once():
    commit_ahead(1 << 20, FLOAT)
    commit_ahead(1000, FLOAT)
    zeros, other = (each.zeros for each in aligned._ahead.values())
    assert aligned_zeros(1000, np.dtype(np.float64)) is not other
    assert aligned_zeros(1 << 20, FLOAT) is zeros
    assert aligned_zeros(1 << 20, FLOAT) is not zeros
    assert aligned_zeros(1000, FLOAT) is other
    assert (zeros.shape, zeros.dtype, zeros.ctypes.data % 64, zeros.any()) == ((1 << 20,), FLOAT, 0, False)


def test_memory_of_another_size_is_released():
    commit_ahead(1 << 20, FLOAT)
    (before,) = aligned._ahead.values()
    aligned_zeros(100, FLOAT)
    assert aligned._ahead
    aligned_zeros(aligned.PIECE, FLOAT)
    assert not aligned._ahead
    assert before.stop.is_set()


def test_nothing_is_written_after_the_zeros_are_in_use(monkeypatch):
    """A thread that is slow stops before it would overwrite what the model has learned."""
    began, resume = Event(), Event()

    class Slow(Event):
        def is_set(self):
            began.set()
            resume.wait(60)
            return super().is_set()

    monkeypatch.setattr(aligned, "Event", Slow)
    commit_ahead(1 << 20, FLOAT)
    (ahead,) = aligned._ahead.values()
    began.wait(60)
    assert ahead.thread.is_alive()
    Timer(0.05, resume.set).start()
    zeros = aligned_zeros(1 << 20, FLOAT)
    assert not ahead.thread.is_alive()
    zeros[:] = 1
    assert zeros.all()


@pytest.mark.parametrize("count", [1, 1023, 1024, 1 << 20])
def test_every_page_is_written_until_it_is_stopped(count, monkeypatch):
    monkeypatch.setattr(aligned, "PIECE", 1 << 14)
    array, stop = np.ones(count, FLOAT), Event()
    aligned._commit(array, stop)
    assert np.flatnonzero(array == 0).tolist() == list(range(0, count, 1024))
    stop.set()
    array[:] = 1
    aligned._commit(array, stop)
    assert array.all()


def test_which_sources_use_most_memory(tmp_path, monkeypatch):
    def judged(content):
        (tmp_path / "source").write_bytes(content)
        return memory.uses_most_memory([str(tmp_path / "source")])

    assert judged(MANY)
    assert not judged(MANY[:900])
    assert not judged(b"".join(b"%d |a x:%d y:0.5\n" % (k % 2, k) for k in range(300)))  # two names
    assert not judged(MANY.replace(b"|", b","))
    assert not memory.uses_most_memory(["-"])
    memory.HUGE_PAGES.write_text("always madvise [never]\n")
    assert not judged(MANY)
    monkeypatch.setattr(memory, "HUGE_PAGES", tmp_path / "none")
    assert not judged(MANY)


def test_the_state_of_the_next_model_is_committed(tmp_path, monkeypatch):
    monkeypatch.setattr(memory, "MIN_BITS", 4)
    source = tmp_path / "source"
    source.write_bytes(MANY)
    settings = default_grid()
    memory.commit_memory([str(source)], 10, settings, False)
    (ahead,) = aligned._ahead.values()
    assert Mixture(1 << 10, settings).linear._lanes.records is ahead.zeros
    assert not aligned._ahead
    for change in ({"MIN_BITS": 11}, {"MAX_BITS": 9}, {"MAX_STATE": 1000}, {"available_cores": lambda: 1}):
        with monkeypatch.context() as changed:
            for name, value in change.items():
                changed.setattr(memory, name, value)
            memory.commit_memory([str(source)], 10, settings, False)
        assert not aligned._ahead, change


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize("more", [(), ("--certificate",), ("--loss", "squared"), ("--alpha", "0.1")])
def test_the_command_uses_it_and_writes_the_same_model(more, tmp_path, monkeypatch):
    source = tmp_path / "source"
    source.write_bytes(MANY[:1500])
    monkeypatch.setattr(memory, "MIN_NAMES", 10)
    monkeypatch.setattr(memory, "MIN_BITS", 4)
    taken = []
    monkeypatch.setattr(aligned, "Thread", lambda **given: (taken.append(given), _Started())[1])
    line = ("train", source, "--bits", "8", "--quiet", *more)
    assert run(*line, "--model", tmp_path / "a").exit_code == 0
    assert (len(taken), aligned._ahead) == (1, {})
    monkeypatch.setattr(memory, "MIN_BITS", 9)
    assert run(*line, "--model", tmp_path / "b").exit_code == 0
    assert len(taken) == 1
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


class _Started:
    def start(self):
        pass

    join = start


@pytest.mark.usefixtures("interpreted")
def test_models_to_continue_and_of_several_classes_are_left_alone(tmp_path, monkeypatch):
    source = tmp_path / "source"
    source.write_bytes(MANY)
    monkeypatch.setattr("forel.cli.memory.commit_memory", lambda *_: pytest.fail("committed"))
    options = ("--bits", "8", "--quiet", "--alpha", "0.1", "--model", tmp_path / "m")
    for more in (("--oaa", "2"), ("--classes", "2")):
        run("train", source, *options, *more)


def test_the_default_number_of_bits_is_that_of_reading():
    assert ReadOptions().bits == command.DEFAULT_BITS
    assert Settings().lanes == 1
