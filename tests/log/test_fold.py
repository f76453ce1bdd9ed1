"""The model is a function of the log: the same bytes for any batches, checkpoints and restarts."""

import time

import numpy as np
import pytest
from scipy.sparse import csr_array

import forel
from forel.data import ReadOptions
from forel.learner.experts import FullFilter
from forel.learner.grid import default_grid
from forel.learner.learner import Learner
from forel.learner.rows import CoalescedRows
from forel.learner.settings import Settings
from forel.log import Contest, Control, Examples, Folder, Left, Outcome, Prediction, replay
from forel.log.folder import batches, events_of, freeze, with_settings
from forel.log.records import join_rows, pack_rows
from forel.training.model import Model

BITS = 5
KINDS = {
    "one": (Settings(alpha=0.5), {"certified": True}),
    "default": (default_grid(full_filters=(FullFilter(1.0),)), {}),
    "squared": (Settings("squared", alpha=0.1), {}),
    "classes": (Settings("softmax", alpha=0.5), {"classes": 3}),
}


def new_model(kind):
    settings, options = KINDS[kind]
    classes = {"classes": ("a", "b", "c")} if "classes" in options else {}
    return Model(Learner(1 << BITS, settings, **options), {"reading": ReadOptions(bits=BITS, **classes).stored})


def write(folder, kind, count=120, seed=5):
    """Fill the log with predictions, late outcomes in another order, rows with labels, and some that left."""
    rng, waiting = np.random.default_rng(seed), []
    outputs = 3 if kind == "classes" else 1
    for k in range(count):
        width = int(rng.integers(1, 6))
        slots = rng.permutation(1 << BITS)[:width].astype(np.int32)
        row = pack_rows(CoalescedRows(np.array([0, width]), slots, rng.normal(size=width).astype(np.float32)))
        label = float(rng.integers(0, outputs)) if outputs > 1 else float(rng.integers(0, 2))
        margins = rng.normal(size=outputs)
        if k % 4 == 3:
            record = Examples(float(k), row, np.array([label]), np.ones(1, np.float32), margins.reshape(1, -1))
            folder.log.append([record])
            continue
        place = folder.log.append([Prediction(float(k), f"id-{k}".encode(), margins, row)])[0]
        waiting.append((place, label))
        if len(waiting) > 9:
            place, label = waiting.pop(int(rng.integers(0, len(waiting))))
            outcome = Outcome(float(k), place, label, float(rng.choice([1.0, 2.5])))
            folder.log.append([Left(float(k), place) if k % 10 == 0 else outcome])


def digest(model, tmp_path):
    path = tmp_path / "digest.forel"
    forel.save(path, Model(model.learner))
    return path.read_bytes()


@pytest.mark.parametrize("kind", KINDS)
def test_bytes_do_not_depend_on_batches_or_restarts(kind, tmp_path, interpreted):
    folder = Folder(tmp_path / "a", new_model(kind))
    write(folder, kind)
    expected = None
    for most in (1, 7, 10_000):
        contest = Contest(new_model(kind))
        for batch in batches(events_of(folder.log), most):
            contest.learn(batch)
        found = digest(contest.model, tmp_path), contest.served.report(), contest.fresh.report()
        expected = expected or found
        assert found == expected
    folder.close()

    # A checkpoint halfway, as left by a process that was killed after it.
    again = Folder(tmp_path / "a")
    assert again.contest.rows == again.replayed == expected[1].rows
    again.close()
    half = Folder(tmp_path / "b", new_model(kind))
    write(half, kind)
    some = list(batches(events_of(half.log), 10))
    for batch in some[: len(some) // 2]:
        half.contest.learn(batch)
    half.save(*freeze(half.contest), needs=0)
    half.close()
    for folder in (Folder(tmp_path / "a"), Folder(tmp_path / "b")):
        contest = folder.contest
        assert (digest(contest.model, tmp_path), contest.served.report(), contest.fresh.report()) == expected
        assert 0 < folder.replayed <= expected[1].rows
        folder.close()


def test_replay_gives_any_moment_other_settings_and_a_model_without_some_events(tmp_path, interpreted):
    folder = Folder(tmp_path / "a", new_model("one"))
    write(folder, "one")
    events = list(events_of(folder.log))
    folder.close()
    everything = replay(tmp_path / "a")
    again = Contest(new_model("one"))
    again.learn(events)
    assert digest(everything.model, tmp_path) == digest(again.model, tmp_path)
    assert everything.served == again.served.report()

    half = replay(tmp_path / "a", until=60.0)
    again = Contest(new_model("one"))
    again.learn([event for event in events if event.time <= 60.0])
    assert digest(half.model, tmp_path) == digest(again.model, tmp_path)
    assert 0 < half.rows < everything.rows

    stored = {}
    with_names = Folder(tmp_path / "a")
    for one in with_names.log.records():
        if isinstance(one.record, Prediction):
            stored[one.place] = one.record.name
    outcomes = [
        (one.end, stored[one.record.place]) for one in with_names.log.records() if isinstance(one.record, Outcome)
    ]
    with_names.close()
    gone = {name for _, name in outcomes[::3]}
    ends = {end for end, name in outcomes if name in gone}
    without = replay(tmp_path / "a", without=[*(name.decode() for name in gone), "never seen"])
    assert without.unknown == ("never seen",)
    again = Contest(new_model("one"))
    again.learn([event for event in events if event.end not in ends])
    assert digest(without.model, tmp_path) == digest(again.model, tmp_path)

    last = outcomes[4]
    until = replay(tmp_path / "a", until=last[1].decode())
    again = Contest(new_model("one"))
    again.learn([event for event in events if event.end <= last[0]])
    assert digest(until.model, tmp_path) == digest(again.model, tmp_path)

    other = replay(tmp_path / "a", model=new_model("default"))
    again = Contest(new_model("default"))
    again.learn(events)
    assert digest(other.model, tmp_path) == digest(again.model, tmp_path)
    assert other.served == everything.served
    with pytest.raises(ValueError, match="until: got 'no such id', expected"):
        replay(tmp_path / "a", until="no such id")


def test_the_cost_of_delay_and_the_certificate_are_about_what_was_served(tmp_path, interpreted):
    folder = Folder(tmp_path / "a", new_model("one"))
    write(folder, "one")
    contest = Contest(new_model("one"))
    events = [event for event in events_of(folder.log) if event.importance[0] == 1]
    contest.learn(events)
    margins = np.concatenate([event.margins[:, 0] for event in events])
    labels = np.concatenate([event.labels for event in events])
    served = np.logaddexp(0.0, margins) - labels * margins
    fresh = contest.model.learner.loss[0]
    assert contest.delay_cost == pytest.approx((served.sum() - fresh) / labels.size, rel=1e-6)
    floor, frontier = contest.certificate(), contest.certificate().frontier()
    assert f"what was served had an average loss of {served.mean():.4f} on" in floor.summary()
    assert "those of the model initial" in floor.summary()
    assert frontier.loss == pytest.approx(served.mean())
    # No fixed model has a smaller loss than the floor of its norm: the best one is found by projected descent.
    rows = join_rows([packed for event in events for packed in event.rows])
    dense = np.ones((labels.size, (1 << BITS) + 1))
    dense[:, :-1] = csr_array((rows.values, rows.indices, rows.indptr), (labels.size, 1 << BITS)).toarray()
    for norm, least in frontier.points[::12]:
        weights, step = np.zeros(dense.shape[1]), 2 / np.square(dense).sum(1).mean()
        for _ in range(500):
            found = dense @ weights
            weights -= step * dense.T @ (1 / (1 + np.exp(-found)) - labels) / labels.size
            weights *= min(1.0, norm / np.linalg.norm(weights))
        best = (np.logaddexp(0.0, found) - labels * found).mean()
        assert best >= least
    assert best < served.mean()
    # After a promotion, the slopes of another model that learned all rows prove the same.
    contest.add("late", with_settings(new_model("one"), {"alpha": 0.1}))
    contest.apply(Control(999.0, {"promote": "late"}), contest.position, None)
    assert contest.certificate().summary() == floor.summary()
    folder.close()


def test_the_loss_of_one_class_proves_nothing_about_that_of_all(tmp_path, interpreted):
    for loss, proved in (("logistic", False), ("softmax", True)):
        contest = Contest(Model(Learner(1 << BITS, Settings(loss, alpha=0.5), classes=3, certified=True)))
        folder = Folder(tmp_path / loss, new_model("classes"))
        write(folder, "classes")
        contest.learn(list(events_of(folder.log)))
        assert (contest.certificate() is not None) == proved
        folder.close()


def test_what_is_older_is_deleted_and_the_rest_still_replays(tmp_path, interpreted, monkeypatch):
    folder = Folder(tmp_path / "a", new_model("one"), segment_bytes=2000, keep=True)
    write(folder, "one")
    for batch in batches(events_of(folder.log), 10):
        folder.contest.learn(batch)
        needs = min([folder.contest.position, *(place for place in needed(folder))])
        folder.save(*freeze(folder.contest), needs=needs)
    expected, before = digest(folder.contest.model, tmp_path), folder.log.start
    assert len(folder.log.segments) > 4
    assert len(folder.checkpoints()) <= len(folder.log.segments) + 1
    assert folder.retain(3600) == 0
    later = time.time() + 7200
    monkeypatch.setattr(time, "time", lambda: later)
    assert folder.retain(3600) > 0
    assert folder.log.start > before
    folder.close()
    again = Folder(tmp_path / "a", keep=True)
    assert digest(again.contest.model, tmp_path) == expected
    again.close()
    assert digest(replay(tmp_path / "a").model, tmp_path) == expected


def test_a_checkpoint_that_cannot_be_written_leaves_no_part_of_it(tmp_path, interpreted, monkeypatch):
    folder = Folder(tmp_path / "a", new_model("one"))
    write(folder, "one")
    folder.contest.learn(list(events_of(folder.log)))
    killed = tmp_path / "a" / "checkpoints" / "00000000000000000099.new"
    killed.mkdir()
    (killed / "initial.forel").write_bytes(b"a part of a model")

    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "savez", full)
    with pytest.raises(OSError, match="No space"):
        folder.save(*freeze(folder.contest), needs=0)
    monkeypatch.undo()
    assert [path.name for path in (tmp_path / "a" / "checkpoints").iterdir()] == ["0" * 20]
    folder.save(*freeze(folder.contest), needs=0)
    assert len(folder.checkpoints()) == 2
    folder.close()


def needed(folder):
    """The places that outcomes after the contest's position refer to."""
    for one in folder.log.records():
        if one.end > folder.contest.position and isinstance(one.record, Outcome):
            yield one.record.place


def test_one_process_at_a_time_and_models_are_given_once(tmp_path, interpreted):
    folder = Folder(tmp_path / "a", new_model("one"))
    with pytest.raises(ValueError, match="another run"):
        Folder(tmp_path / "a")
    folder.close()
    with pytest.raises(ValueError, match="has one, which continues to learn"):
        Folder(tmp_path / "a", new_model("one"))
    with pytest.raises(ValueError, match="a model or settings to begin with"):
        Folder(tmp_path / "b")


def test_challengers_and_changes_are_part_of_the_log(tmp_path, interpreted):
    folder = Folder(tmp_path / "a", new_model("one"))
    write(folder, "one", 60)
    better = with_settings(new_model("one"), {"alpha": 0.1})
    folder.contest.check_challenger("slow", better)
    changes = [{"add": "slow", "file": folder.save_added("slow", better)}, {"promote": "slow"}, {"rollback": True},
               {"promote": "slow"}, {"remove": "initial"}]  # fmt: skip
    for k, change in enumerate(changes):
        folder.log.append([Control(100.0 + k, change)])
        if k < 4:
            write(folder, "one", 40, seed=k)
    folder.close()
    expected = None
    for most in (1, 7, 10_000):
        contest = Contest(new_model("one"))
        reading = Folder(tmp_path / "a")
        for batch in batches(events_of(reading.log), most):
            if isinstance(batch, list):
                contest.learn(batch)
            else:
                contest.apply(batch.control, batch.end, reading.load_model)
            if most == 7 and contest.position > reading.log.end // 2 and len(reading.checkpoints()) == 1:
                reading.save(*freeze(contest), needs=0)
        found = digest(contest.model, tmp_path), contest.pack()[0], contest.served.report()
        expected = expected or found
        assert found == expected
        recovered = reading.contest
        assert (digest(recovered.model, tmp_path), recovered.pack()[0], recovered.served.report()) == expected
        assert recovered.alarms.state.tolist() == contest.alarms.state.tolist()
        assert recovered.new_features.seen.tolist() == contest.new_features.seen.tolist()
        reading.close()
    assert expected[1]["champion"] == "slow"
    assert expected[1]["models"] == ["slow"]
    with pytest.raises(ValueError, match="no model was promoted"):
        contest.check({"rollback": True})
    assert digest(replay(tmp_path / "a").model, tmp_path) == expected[0]


def test_what_cannot_challenge_is_refused(interpreted):
    contest = Contest(new_model("one"))
    for name, model, message in (
        ("a b", new_model("one"), "a name of letters"), ("initial", new_model("one"), "another than initial"),
        ("c", new_model("squared"), "loss: got 'squared', expected logistic"),
        ("c", new_model("classes"), "classes: got 3, expected None"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=message):
            contest.check_challenger(name, model)
    with pytest.raises(ValueError, match="this model is served"):
        contest.check({"remove": "initial"})
    with pytest.raises(ValueError, match="one of initial"):
        contest.check({"promote": "other"})
