"""Mixing on another thread while the next block is learned: same bits, same order, same errors."""

import itertools
import threading

import numpy as np
import pytest

from forel.data import Malformed
from forel.learner.experts import FullFilter
from forel.learner.learner import Learner
from forel.learner.settings import Settings
from forel.training.history import History
from forel.training.model import Model, load
from forel.training.run import available_cores, overlapped
from forel.training.train import train

SETTINGS = Settings(alpha=(0.1, 1.0), rate="scale_free")


class Collected:
    """A callback that does not read the model, and may raise after some blocks."""

    reads_model = False

    def __init__(self, stop_after=None, error=KeyboardInterrupt):
        self.rows, self.losses, self.ahead = [], [], []
        self.stop_after, self.error = stop_after, error

    def __call__(self, update):
        report = update.progressive.report()
        assert report.rows + update.holdout.report().rows == update.rows
        self.rows.append(update.rows)
        self.losses.append(report.loss)
        if update.pass_number == 1:
            self.ahead.append(update.model.rounds - report.rows)
        if len(self.rows) == self.stop_after:
            raise self.error


@pytest.fixture
def cores(monkeypatch):
    """Set the number of cores that training may use."""
    return lambda number: monkeypatch.setattr("forel.training.train.available_cores", lambda: number)


def broken(margin, label):
    d = margin - label
    return 0.5 * d * d, (d if label != 7 else np.nan)


def lines(rows, extra=()):
    made = [f"{k * 7 % 5 % 2} |a x{k % 4} y{k % 3}:0.5\n" for k in range(rows)]
    for place, line in extra:
        made[place] = line
    return "".join(made).encode()


def steps(log, count, fail_first=None, fail_second=None):
    def second(k):
        if k == fail_second:
            raise ValueError(f"second part of {k}")
        log.append(("second", k, threading.current_thread() is threading.main_thread()))
        return k

    for k in range(count):
        if k == fail_first:
            raise ValueError(f"first part of {k}")
        log.append(("first", k, True))
        yield lambda k=k: second(k)


@pytest.mark.parametrize("exact", [[False], [True], [False, True], [True, False, False]])
@pytest.mark.parametrize("count", [0, 1, 2, 7])
def test_results_are_in_order_and_both_parts_run_in_order(count, exact):
    log, flags = [], itertools.cycle(exact)
    kept = []

    def is_exact():
        kept.append(next(flags))
        return kept[-1]

    assert list(overlapped(steps(log, count), is_exact)) == list(range(count))
    for part in ("first", "second"):
        assert [k for name, k, _ in log if name == part] == list(range(count))
    assert [on_main for name, _, on_main in log if name == "second"] == kept
    for k in range(count - 1):
        if kept[k]:  # its second part is before the next first part
            assert log.index(("second", k, True)) < log.index(("first", k + 1, True))


def test_no_second_part_runs_while_a_result_is_used():
    log = []
    for k in overlapped(steps(log, 5), lambda: False):
        assert [step for name, step, _ in log if name == "second"][-1] == k


@pytest.mark.parametrize("place", [0, 1, 3])
def test_errors_of_both_parts_come_after_the_results_before_them(place):
    for options in ({"fail_first": place}, {"fail_second": place}):
        running, found = overlapped(steps([], 5, **options), lambda: False), []
        with pytest.raises(ValueError, match=f"part of {place}"):
            found.extend(running)
        assert found == list(range(place))


def test_second_parts_are_done_where_the_caller_stops():
    log = []
    running = overlapped(steps(log, 9), lambda: False)
    next(running)
    next(running)
    running.close()
    first, second = ([k for name, k, _ in log if name == part] for part in ("first", "second"))
    assert first == second == [0, 1, 2]


def test_there_is_at_least_one_core():
    assert available_cores() >= 1


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize("again", [False, True])
@pytest.mark.parametrize("loss", ["logistic", "squared", "hinge"])
def test_two_parts_are_the_same_as_one(loss, again):
    full = (FullFilter(1.0),) if loss != "hinge" else ()
    mixed = {"filters": ((1.0, 1.0),), "full_filters": full} if full else {}
    settings = Settings(loss, alpha=(0.1, 1.0), rate="scale_free", **mixed)
    rng = np.random.default_rng(1)
    rows, labels = rng.normal(size=(12, 4)), rng.integers(2, size=12) * (2.0 if settings.signed else 1.0)
    labels = labels - 1 if settings.signed else labels
    weights, out = rng.random(12), np.arange(12) % 5 == 0
    for new in (lambda: Learner(4, settings), lambda: Learner(4, settings, mixed=False)):
        one, two = new(), new()
        parts = [slice(0, 5), slice(5, 6), slice(6, 12)]
        expected = [one.progress(rows[p], labels[p], weights[p], out[p], again) for p in parts]
        later = [two.begin(rows[p], labels[p], weights[p], out[p], again) for p in parts]
        assert two.rounds == one.rounds
        for margins, finish in zip(expected, later, strict=True):
            assert finish().tobytes() == margins.tobytes()
        if one.mixture is not None:
            packed = [{name: a.tobytes() for name, a in each.mixture.pack().items()} for each in (one, two)]
            assert packed[0] == packed[1]
        assert two.state.records.tobytes() == one.state.records.tobytes()


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"passes": 2, "holdout": 5},
        {"holdout_after": 40, "slices": ["a"]},
        {"fixed_share": 0.01},
        {"settings": Settings("squared", alpha=(0.1, 1.0))},
        {"settings": None, "certificate": True},
    ],
)
def test_overlapping_does_not_change_a_bit(options, cores, tmp_path):
    (tmp_path / "rows").write_bytes(lines(60))
    found = []
    chosen = {"settings": SETTINGS, "bits": 5, "block_bytes": 150, **options}
    for number, threads in ((1, 0), (1, 1), (2, 0), (2, 1), (2, 2)):
        cores(number)
        seen = Collected()
        trained = train(tmp_path / "rows", threads=threads, progress=seen, **chosen)
        trained.save(tmp_path / "m")
        results = (
            trained.report,
            trained.training.holdout,
            trained.training.passes,
            trained.training.slices,
        )
        found.append(((tmp_path / "m").read_bytes(), repr(results), seen.rows, seen.losses))
        assert any(seen.ahead) == (number == 2 and threads > 0)
        assert len(seen.rows) > 5
    assert all(one == found[0] for one in found)


@pytest.mark.usefixtures("interpreted")
def test_callbacks_see_the_model_of_their_block_unless_they_do_not_read_it(cores, tmp_path):
    cores(2)
    (tmp_path / "rows").write_bytes(lines(60))
    options = {"settings": SETTINGS, "bits": 5, "block_bytes": 150}
    rounds = []
    train(tmp_path / "rows", progress=lambda update: rounds.append(update.model.rounds - update.rows), **options)
    assert set(rounds) == {0}
    history = History(rounds=lambda update: {"rounds": update.model.rounds - update.model.first_pass_rows})
    train(tmp_path / "rows", progress=history, **options)
    history.close()
    assert set(history.curves["rounds"]["rounds"].values) == {0}
    seen = Collected()
    train(tmp_path / "rows", progress=seen, **options)
    assert max(seen.ahead) > 0
    one_model = Collected()
    train(tmp_path / "rows", Settings(), progress=one_model, bits=5, block_bytes=150)
    assert set(one_model.ahead) == {0}


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize("every", [1, 12])
def test_checkpoints_are_of_whole_blocks_and_resume_to_the_same_bytes(every, cores, tmp_path):
    cores(2)
    (tmp_path / "rows").write_bytes(lines(60))
    options = {"settings": SETTINGS, "bits": 5, "block_bytes": 150, "passes": 2, "holdout": 7}
    train(tmp_path / "rows", **options).save(tmp_path / "whole")
    path = tmp_path / "c"
    for after in (2, 5, 8, 12):
        stop = Collected(after)
        with pytest.raises(KeyboardInterrupt):
            train(tmp_path / "rows", progress=stop, checkpoint=path, checkpoint_every=every, **options)
        stored = load(path) if path.exists() else None
        assert stored is not None or every > after
        if stored is not None and stored.extra["checkpoint"]["place"]["pass_number"] == 1:
            assert stored.learner.rounds == stored.learner.first_pass_rows > 0
        going = {"checkpoint": path, "checkpoint_every": every, "resume": True}
        train(tmp_path / "rows", progress=Collected(), **going, **options).save(tmp_path / "again")
        assert (tmp_path / "again").read_bytes() == (tmp_path / "whole").read_bytes()
        assert not path.exists()


@pytest.mark.usefixtures("interpreted")
def test_checkpoints_are_written_after_the_same_rows(cores, tmp_path, monkeypatch):
    (tmp_path / "rows").write_bytes(lines(60))
    written = []
    monkeypatch.setattr(
        "forel.training.checkpoint.write_checkpoint",
        lambda to, place, _: written.append((place.rows, to.model().rounds, to.model().first_pass_rows)),
    )
    for number in (1, 2):
        cores(number)
        options = {"bits": 5, "block_bytes": 150, "checkpoint": tmp_path / "c", "checkpoint_every": 12}
        train(tmp_path / "rows", SETTINGS, progress=Collected(), **options)
    half = len(written) // 2
    assert written[:half] == written[half:]
    assert half > 2
    assert all(rows == rounds == mixed for rows, rounds, mixed in written)


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize(
    ("line", "error", "message"),
    [
        ("0 |a b:c\n", Malformed, "line 46, column"),
        ("7 |a x1\n", ValueError, r"loss: got a value or slope that is not finite in row \d, whose label is 7"),
    ],
)
def test_errors_are_the_same_and_come_after_the_blocks_before_them(line, error, message, cores, tmp_path):
    (tmp_path / "rows").write_bytes(lines(60, [(45, line)]))
    settings, found = Settings(broken, alpha=(0.1, 1.0)), []
    for number in (1, 2):
        cores(number)
        seen = Collected()
        with pytest.raises(error, match=message) as raised:
            train(tmp_path / "rows", settings, progress=seen, bits=5, block_bytes=150)
        found.append((str(raised.value), seen.rows, seen.losses))
    assert found[0] == found[1]
    assert found[0][1]


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize("after", [1, 4])
def test_a_model_trained_in_place_is_complete_after_an_interrupt(after, cores, tmp_path):
    cores(2)
    (tmp_path / "rows").write_bytes(lines(60))
    model = Learner(32, SETTINGS)
    start = Model(model, {"reading": {"bits": 5}})
    with pytest.raises(KeyboardInterrupt):
        train(tmp_path / "rows", model=start, copy=False, progress=Collected(after), block_bytes=150)
    assert model.rounds == model.first_pass_rows > 0
    assert model._lock.version % 2 == 0
