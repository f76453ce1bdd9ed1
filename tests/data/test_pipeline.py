"""Threads change when things happen, and nothing else: same blocks, same problems, same errors, no thread left over."""

import gzip
import os
import sys
import threading
import time

import numpy as np
import pytest

from forel.data import Malformed, concatenate, pipeline, read
from forel.data.pipeline import in_order, lower_priority, ordered_blocks
from forel.learner.learner import Learner
from forel.learner.rows import Rows
from forel.learner.settings import Settings


def write(path, rows=400, bad=()):
    rng = np.random.default_rng(1)
    lines = []
    for r in range(rows):
        words = " ".join(f"f{k}:{rng.random():.3f}" for k in rng.integers(0, 50, 5))
        lines.append(f"{2 * int(rng.integers(0, 2)) - 1} |a {words}\n" if r not in bad else "1 |a b:x\n")
    path.write_text("".join(lines))
    return path


def learned(reader, threads):
    model = Learner(1 << 10, Settings(alpha=0.5, l1=0.1))
    for block in ordered_blocks(reader, threads):
        model.learn(Rows(*block.rows), (block.labels + 1) / 2, block.importance)
    return model.state.numbers.tobytes()


@pytest.mark.parametrize("threads", [0, 1, 2, 5])
@pytest.mark.parametrize("block_bytes", [1, 100, 4096, 1 << 20])
def test_threads_and_blocks_do_not_change_a_bit(tmp_path, threads, block_bytes):
    path = write(tmp_path / "a.vw")
    whole = learned(read(path, bits=10), 0)
    assert learned(read(path, bits=10, block_bytes=block_bytes), threads) == whole


@pytest.mark.parametrize("threads", [0, 1, 3])
def test_problems_and_names_are_recorded_in_order(tmp_path, threads):
    one, two = write(tmp_path / "a.vw", bad=(3, 70, 300)), write(tmp_path / "b.vw", bad=(5,))
    cut = tmp_path / "c.vw.gz"
    cut.write_bytes(gzip.compress(two.read_bytes())[:-20])
    table = tmp_path / "d.csv"
    table.write_text("x,y\n1,2\n3\n")
    options = {"bits": 12, "names": True, "on_error": "skip"}
    serial = read([one, cut, two, table], **options)
    whole = concatenate(serial)
    for names in (True, False):
        reader = read([one, cut, two, table], **options | {"names": names, "block_bytes": 500})
        found = concatenate(ordered_blocks(reader, threads))
        assert found.indices.tobytes() == whole.indices.tobytes()
        assert (reader.problems.count, reader.problems.messages) == (serial.problems.count, serial.problems.messages)
        assert not names or [reader.names[k] for k in reader.names] == [serial.names[k] for k in serial.names]


def new_threads(before):
    """Return the threads of readers that were not there before; other tests may have left some."""
    return [t for t in threading.enumerate() if t.name.startswith("forel") and t not in before]


@pytest.mark.parametrize("threads", [0, 1, 3])
def test_the_first_error_of_the_file_is_raised_after_the_blocks_before(tmp_path, threads):
    path = write(tmp_path / "a.vw", bad=(100, 101, 350))
    sizes, before = [], threading.enumerate()
    blocks = ordered_blocks(read(path, block_bytes=300), threads)
    with pytest.raises(Malformed, match="line 101, column 8"):
        sizes.extend(map(len, blocks))
    assert 90 < sum(sizes) <= 100
    assert not new_threads(before)


@pytest.mark.parametrize("threads", [1, 4])
def test_the_number_of_tasks_ahead_is_bounded_and_stopping_early_ends_the_threads(threads):
    begun, closed, before = [], [], threading.enumerate()

    def tasks():
        try:
            for k in range(10_000):
                begun.append(k)
                yield lambda k=k: k
        finally:
            closed.append(threading.current_thread().name)

    results = in_order(tasks(), threads)
    assert [next(results) for _ in range(5)] == [0, 1, 2, 3, 4]
    time.sleep(0.1)
    assert len(begun) <= 5 + 2 * threads + 3
    results.close()
    assert closed == ["forel-reader"]
    assert not new_threads(before)


@pytest.mark.parametrize("threads", [0, 1, 2])
def test_errors_in_getting_tasks_and_in_tasks_reach_the_caller(threads):
    def broken():
        yield lambda: 1
        raise OSError("gone")

    with pytest.raises(OSError, match="gone"):
        list(in_order(broken(), threads))
    with pytest.raises(ZeroDivisionError):
        list(in_order([lambda: 1 / 0], threads))


def test_an_error_of_reading_that_is_queued_while_the_caller_waits_is_raised_as_it_is():
    failed, started, release = threading.Event(), threading.Event(), threading.Event()

    def tasks():
        yield lambda: 0
        yield lambda: (started.set(), release.wait(20), 1)[2]
        started.wait(20)  # another thread runs this task
        failed.set()
        raise EOFError("no end")

    results = in_order(tasks(), 2)
    assert next(results) == 0
    failed.wait(20)
    time.sleep(0.05)
    threading.Timer(0.1, release.set).start()
    assert next(results) == 1
    with pytest.raises(EOFError, match="no end"):
        next(results)


def test_the_caller_runs_a_later_task_instead_of_waiting():
    later = threading.Event()
    assert list(in_order([lambda: later.wait(20), later.set], threads=1)) == [True, None]


def test_sequential_tasks_run_one_after_the_other():
    run = []
    tasks = [lambda k=k: (run.append(k), time.sleep(0.001)) for k in range(50)]
    list(in_order(tasks, threads=3, sequential=True))
    assert run == list(range(50))


def test_a_reader_that_waits_for_bytes_is_left_behind():
    release = threading.Event()

    def tasks():
        yield lambda: 1
        release.wait(20)

    results = in_order(tasks(), 2)
    assert next(results) == 1
    start = time.monotonic()
    results.close()
    assert time.monotonic() - start < 5
    release.set()


@pytest.mark.skipif(sys.platform != "linux", reason="threads have no priorities of their own")
def test_parsing_threads_have_a_lower_priority_than_the_caller(monkeypatch):
    own, found = os.getpriority(os.PRIO_PROCESS, 0), []

    def lowered():
        lower_priority()
        found.append((threading.current_thread().name, os.getpriority(os.PRIO_PROCESS, 0)))

    monkeypatch.setattr(pipeline, "lower_priority", lowered)
    assert list(in_order((lambda k=k: k for k in range(50)), threads=2)) == list(range(50))
    assert found
    for name, niceness in found:
        assert name.startswith("forel-parser")
        assert niceness == min(own + pipeline.NICENESS, 19)
    assert os.getpriority(os.PRIO_PROCESS, 0) == own


def test_priorities_that_cannot_be_changed_are_left_alone(monkeypatch):
    def refused(*_):
        raise PermissionError

    monkeypatch.setattr(os, "setpriority", refused, raising=False)
    lower_priority()
    assert list(in_order((lambda k=k: k for k in range(9)), threads=1)) == list(range(9))
