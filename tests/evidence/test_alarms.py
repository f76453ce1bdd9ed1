"""Alarms: how often false ones come, how soon right ones do, and a slow twin."""

import math

import numpy as np
import pytest

from forel.evidence import Alarms
from forel.evidence.alarms import BETS
from tests.evidence.streams import allowed

EVERY = 2000


def nulls(rng, n):
    """Losses and errors of rows whose means do not increase."""
    fair = rng.choice([-0.5, 0.5], n)
    yield "the same rows", rng.exponential(0.4, n), fair
    yield "losses that fall", rng.exponential(1.0, n) * np.geomspace(2.0, 0.1, n), fair
    yield "two values", np.where(rng.random(n) < 0.05, 4.0, 0.05), fair
    yield "variance that grows, clipped", rng.exponential(0.4, n), fair * np.linspace(0, 1, n)
    yield "rare labels", rng.exponential(0.1, n), (rng.random(n) < 0.02) - 0.02


@pytest.mark.parametrize("numbers", [False, True])
def test_at_most_one_false_alarm_in_the_stated_number_of_rows_is_expected(numbers):
    # The number of runs with a false alarm is at most binomial: the expected number of alarms of each is at most 1, and
    # that a run has one at all has a probability of at most 0.95.
    rng, runs = np.random.default_rng(0), 40
    alarms = {}
    for _ in range(runs):
        for name, losses, errors in nulls(rng, EVERY):
            one = Alarms(EVERY, numbers)
            one.add(losses, errors)
            alarms.setdefault(name, []).append(one.count)
    assert max(map(sum, alarms.values())) <= runs, alarms
    # In practice there are far fewer; a detector that fires all the time would have one in each run.
    assert max(sum(count > 0 for count in counts) for counts in alarms.values()) <= allowed(0.1, runs), alarms


def test_changes_are_found_where_they_are():
    rng = np.random.default_rng(1)
    n, at = 20_000, 12_000
    late = np.arange(n) >= at
    loss, error = rng.exponential(0.3, n), rng.choice([-0.5, 0.5], n)
    unseen = rng.binomial(10, 0.02, n) / 10
    cases = {
        "loss": (loss * (1 + late), error, unseen),
        "labels above predictions": (loss, np.where(late & (rng.random(n) < 0.4), 0.5, error), unseen),
        "labels below predictions": (loss, np.where(late & (rng.random(n) < 0.4), -0.5, error), unseen),
        "new features": (loss, error, np.where(late, rng.binomial(10, 0.3, n) / 10, unseen)),
    }
    for what, streams in cases.items():
        alarms = Alarms()
        for part in np.array_split(np.arange(n), 9):
            alarms.add(*(one[part] for one in streams))
        first = alarms.found[0]
        assert first.what == what
        assert at < first.row < at + 500
        assert abs(first.since - at) < 150
        assert "1,000,000 rows is expected" in alarms.sentence()


def detectors():
    """Other detectors, as functions from losses to the rows of their alarms: river's, and one that always fires."""
    drift = pytest.importorskip("river.drift")

    def of(new):
        def rows(losses):
            one, found = new(), []
            for row, loss in enumerate(losses.tolist(), 1):
                one.update(loss)
                if one.drift_detected:
                    found.append(row)
            return found

        return rows

    def ours(losses):
        alarms = Alarms(EVERY)
        alarms.add(losses)
        return [one.row for one in alarms.found]

    return {
        "forel": ours, "ADWIN": of(drift.ADWIN), "Page-Hinkley": of(drift.PageHinkley),
        "always": lambda losses: list(range(1, losses.size + 1)),
    }  # fmt: skip


def test_other_detectors_take_losses_that_fall_for_a_change():
    rng, runs, at = np.random.default_rng(4), 5, 2 * EVERY
    names = list(detectors())
    still, falling, right = (dict.fromkeys(names, 0) for _ in range(3))
    for _ in range(runs):
        losses = rng.exponential(0.3, 2 * at)
        learning = losses * np.geomspace(3, 0.3, losses.size)
        changed = losses * np.where(np.arange(losses.size) < at, 1.0, 2.5)
        for name, rows in detectors().items():
            still[name] += len(rows(losses))
            falling[name] += len(rows(learning))
            found = rows(changed)
            right[name] += any(at < row <= at + 600 for row in found) and not any(row <= at for row in found)
    expected = runs * losses.size / EVERY  # at most, by the stated rate
    assert still["forel"] < expected
    assert falling["forel"] < expected
    assert right["forel"] == runs
    # One that always fires finds every change, and never by itself. The others take losses that fall for a change.
    assert (still["always"], right["always"]) == (runs * losses.size, 0)
    assert min(falling["ADWIN"], falling["Page-Hinkley"]) > expected / 2 >= 10 * falling["forel"]


def test_blocks_give_the_same_bits_and_alarms_are_returned_once():
    rng = np.random.default_rng(2)
    losses = rng.exponential(0.3, 9000) * (1 + 2 * (np.arange(9000) // 1500 % 2))
    once, blocks = Alarms(1000), Alarms(1000)
    found = once.add(losses)
    each = [alarm for part in np.array_split(losses, 50) for alarm in blocks.add(part)]
    assert found == each == once.found
    assert len(found) >= 2
    assert np.array_equal(once.state, blocks.state)


def test_the_first_alarm_is_that_of_a_slow_twin():
    rng = np.random.default_rng(3)
    x = rng.beta(2, 8, 3000) + 0.3 * (np.arange(3000) >= 2000)
    rates = np.geomspace(1e-4, 0.9, 12)
    slack, needed = math.log(12 * 4 / 0.05), 4 * 5000 / 0.9
    n = total = variation = 0.0
    reference, refresh = 1.0, 0.0
    wealth, since, references = np.zeros(BETS.size), np.zeros(BETS.size), np.ones(BETS.size)
    for row, value in enumerate(x, start=1):
        mean = total / n if n else 0.5
        new = wealth <= 1
        wealth[new], since[new], references[new] = 1, row - 1, reference
        wealth *= 1 + BETS * (value / references - 1)
        if wealth.mean() >= needed:
            break
        n, total, variation = n + 1, total + value, variation + (value - mean) ** 2
        if n >= refresh:
            bounds = (total + (slack + (-np.log1p(-rates) - rates) * variation) / rates) / n
            reference, refresh = min(1.1 * min(1.0, bounds.min()), 1.0), math.floor(1.05 * n) + 1
    alarms = Alarms(5000)
    (first, *_) = alarms.add(x * -math.log(0.01))
    assert (first.row, first.since) == (row, since[wealth.argmax()])


def test_bad_input_is_named():
    with pytest.raises(ValueError, match="losses: got"):
        Alarms().add([0.1, np.nan])
    with pytest.raises(ValueError, match="row 0 of errors: got nan"):
        Alarms().add([0.1], [np.nan])
    assert Alarms().sentence() is None
