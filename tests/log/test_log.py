"""The files of the event log: recovery, damage, and what waits."""

import os
import tracemalloc

import numpy as np
import pytest

from forel.learner.rows import CoalescedRows
from forel.log import Control, Examples, Index, Left, Log, LogDamaged, LogFailed, Outcome, Prediction
from forel.log.files import give_up_after
from forel.log.records import pack_rows, unpack_rows

RNG = np.random.default_rng(7)


def rows(count, width=4, plain=False):
    values = np.ones(count * width, np.float32) if plain else RNG.normal(size=count * width).astype(np.float32)
    slots = np.concatenate([RNG.permutation(64)[:width] for _ in range(count)]).astype(np.int32)
    return CoalescedRows(np.arange(0, count * width + 1, width), slots, values)


def events(count):
    """Predictions, rows with labels, and a change of models."""
    packed = [pack_rows(rows(1, plain=k % 2 == 0)) for k in range(count)]
    predictions = [Prediction(float(k), f"id-{k}".encode(), RNG.normal(size=1), row) for k, row in enumerate(packed)]
    labels, ones = np.array([0.0, 1, 1]), np.ones(3, np.float32)
    return [*predictions, Examples(9.0, pack_rows(rows(3)), labels, ones, RNG.normal(size=(3, 1))),
            Control(9.5, {"promote": "other"})]  # fmt: skip


def filled(folder, segment_bytes=1 << 26):
    log = Log(folder, segment_bytes)
    places = [log.append([record])[0] for record in events(6)]
    log.append([Outcome(10.0, places[2], 1.0, 2.0), Left(11.0, places[0])])
    log.append([Outcome(12.0, places[3], 0.0, 1.0)])
    log.sync()
    return log, places


def same(a, b):
    return type(a) is type(b) and a.pack() == b.pack()


def test_records_come_back_in_order_and_by_their_place(tmp_path):
    log, places = filled(tmp_path)
    stored = list(log.records())
    assert [one.place for one in stored[: len(places)]] == places
    assert stored[-1].end == log.end == log.durable
    assert all(same(log.read(one.place), one.record) for one in stored)
    assert [one.record.time for one in log.records(places[-1])] == [9.5, 10.0, 11.0, 12.0]
    for array, again in zip(rows(2), unpack_rows(pack_rows(rows(2))), strict=True):
        assert array.dtype == again.dtype


def test_a_log_cut_anywhere_in_its_last_record_is_the_log_before_it(tmp_path):
    log, _ = filled(tmp_path)
    *_, before, last = log.records()
    log.close()
    path = next(tmp_path.glob("*.log"))
    whole = path.read_bytes()
    for size in range(last.place, last.end):
        path.write_bytes(whole[:size])
        again = Log(tmp_path)
        assert (again.end, again.cut) == (last.place, size - last.place)
        assert list(again.records())[-1].place == before.place
        place = again.append([last.record])[0]
        assert same(again.read(place), last.record)
        assert path.read_bytes() == whole
        again.close()


def test_every_bit_that_flips_before_the_last_record_is_noticed(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda file: None)  # thousands of times
    log, _ = filled(tmp_path)
    last = list(log.records())[-1]
    log.close()
    path = next(tmp_path.glob("*.log"))
    whole = path.read_bytes()
    for bit in [*range(8 * 40), *(8 * byte + byte % 8 for byte in range(40, last.place))]:
        damaged = bytearray(whole)
        damaged[bit // 8] ^= 1 << bit % 8
        path.write_bytes(damaged)
        with pytest.raises(LogDamaged, match="forel log DIR --give-up-after"):
            Log(tmp_path)


def test_what_follows_damage_is_given_up_only_on_request_and_kept_aside(tmp_path):
    log, places = filled(tmp_path)
    log.close()
    path = next(tmp_path.glob("*.log"))
    damaged = bytearray(path.read_bytes())
    damaged[places[3] + 20] ^= 1
    path.write_bytes(damaged)
    gone = give_up_after(tmp_path, places[3])
    log = Log(tmp_path)
    assert log.end == places[3]
    assert path.with_suffix(".damaged").read_bytes() == bytes(damaged[-gone:])


def test_segments_follow_one_another_and_a_missing_one_is_noticed(tmp_path):
    log, places = filled(tmp_path, segment_bytes=200)
    assert len(log.segments) > 3
    ends = [one.end for one in log.records()]
    log.close()
    again = Log(tmp_path, segment_bytes=200)
    assert [one.end for one in again.records()] == ends
    assert again.drop_before(places[4]) > 0
    assert again.start <= places[4]
    assert [one.place for one in again.records(places[4])][:2] == places[4:6]
    again.close()
    sorted(tmp_path.glob("*.log"))[1].unlink()
    with pytest.raises(LogDamaged):
        Log(tmp_path)


def test_a_log_that_cannot_be_written_is_as_before_and_says_why(tmp_path, monkeypatch):
    log, _ = filled(tmp_path)
    end, write = log.end, os.write
    monkeypatch.setattr(os, "write", lambda file, data: write(file, data[:5]))
    with pytest.raises(LogFailed, match="free some space"):
        log.append([Left(1.0, 0)])
    monkeypatch.undo()
    assert log.end == end
    log.append([Left(1.0, 0)])

    def failing(file):
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "fdatasync", failing)
    for call in (log.sync, lambda: log.append([Left(1.0, 0)])):
        with pytest.raises(LogFailed, match="start again"):
            call()
    assert log.durable < log.end


def test_the_index_knows_what_waits_after_any_restart(tmp_path):
    log, places = filled(tmp_path)
    index = Index(remember=2)
    for stored in log.records():
        index.note(stored.place, stored.record)
    assert sorted(index.waiting) == [b"id-1", b"id-4", b"id-5"]
    assert sorted(index.settled) == [b"id-0", b"id-3"]  # the oldest is forgotten
    assert index.oldest == (1.0, places[1])
    assert np.isnan(index.settled[b"id-0"].label)
    assert sum(index.ages(100.0)) == 3


def test_a_prediction_without_outcome_keeps_no_others_in_memory():
    index, none = Index(remember=10), np.zeros(1)
    index.note(0, Prediction(0.0, b"never", none, b""))
    tracemalloc.start()
    for k in range(1, 20_000):
        index.note(k, Prediction(float(k), b"id-%d" % k, none, b""))
        index.note(10**6 + k, Outcome(float(k), k, 1.0, 1.0))
        assert index.oldest == (0.0, 0)
    size, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert size < 100_000
    assert index.ages(86_400.0) == [0, 0, 1, 0]
    assert index.oldest_places(10.0**6, 5) == [0]
