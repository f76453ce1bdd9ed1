"""Lanes that are learned apart: the same bytes as together, and which models can be divided."""

import numpy as np
import pytest

from forel.data.clicks import write_clicks
from forel.learner.grid import default_grid
from forel.learner.lane_parts import join_lanes, margins_of, set_state, split_lanes, state_of
from forel.learner.linear import Linear
from forel.learner.mixture import Mixture
from forel.learner.settings import Settings
from forel.training.shards import Merging
from forel.training.train import train

GRID = default_grid(lanes=5)


class LocalLanes:
    """Parts of a model in this process, which are collected where training asks for it."""

    def __init__(self, number):
        self.number, self.collections = number, 0

    def start(self, model):
        self.model, self.parts = model, split_lanes(model, self.number)
        self.states = [part.new() for part in self.parts]
        for part, state in zip(self.parts, self.states, strict=True):
            set_state(state, part.state_of(model.linear._lanes))

    def learn(self, given):
        found = [part.learn(state, given) for part, state in zip(self.parts, self.states, strict=True)]
        return lambda: margins_of(self.parts, found, given.labels)

    def collect(self):
        self.collections += 1
        join_lanes(self.model, self.parts, [state_of(state) for state in self.states])


@pytest.fixture(scope="module")
def clicks(tmp_path_factory):
    path = tmp_path_factory.mktemp("clicks") / "a.vw"
    with path.open("wb") as file:
        write_clicks(file, 50, "vw", seed=5)
    return str(path)


@pytest.fixture(scope="module")
def classes(tmp_path_factory):
    path, rng = tmp_path_factory.mktemp("classes") / "a.csv", np.random.default_rng(1)
    rows = (
        f"{label},{x:.3f},w{k % 7}" for k, (label, x) in enumerate(zip("abcdea" * 15, rng.normal(size=90), strict=True))
    )
    path.write_text("y,x,w\n" + "\n".join(rows) + "\n")
    return str(path)


def saved(tmp_path, trained):
    trained.save(tmp_path / "m.forel")
    return (tmp_path / "m.forel").read_bytes()


@pytest.mark.parametrize(("source", "settings", "extra", "parts"), [
    ("clicks", GRID, {"holdout": 7, "certified": True}, 2),
    ("clicks", GRID, {"passes": 2}, 9),
    ("clicks", Settings(alpha=(0.1, 0.3, 1.0, 3.0), algorithm="mirror", rate="root", penalty_weight="every"), {}, 2),
    ("classes", Settings(alpha=0.3), {"label": "y", "classes": "auto", "passes": 2}, 3),
    ("classes", Settings("hinge", alpha=(0.1, 0.5)), {"label": "y", "classes": "auto"}, 2),
    ("classes", Settings("softmax", alpha=(0.1, 0.5, 2.0)), {"label": "y", "certified": True}, 3),
])  # fmt: skip
def test_the_model_file_has_the_same_bytes(request, tmp_path, interpreted, source, settings, extra, parts):
    path, options = request.getfixturevalue(source), {"bits": 10, "block_bytes": 2000, **extra}
    alone = train(path, settings, **options)
    lanes = LocalLanes(parts)
    together = train(path, settings, lane_learners=lanes, **options)
    assert 1 < len(lanes.parts) <= parts
    assert min(part.lanes.size for part in lanes.parts) > 1
    assert lanes.collections == extra.get("passes", 1)
    assert saved(tmp_path, together) == saved(tmp_path, alone)
    assert (together.report, together.certificate) == (alone.report, alone.certificate)


class StoppedError(Exception):
    pass


def test_a_callback_and_a_checkpoint_have_the_model_so_far(clicks, tmp_path, interpreted):
    options = {"bits": 10, "block_bytes": 2000, "certified": True}
    alone, seen = train(clicks, GRID, **options), []

    def stop(progress):
        seen.append(progress.model.rounds == progress.rows > 0 and progress.model.linear.loss.min() > 0)
        if len(seen) > 3:
            raise StoppedError

    saving = {"checkpoint": tmp_path / "c", "checkpoint_every": 1}
    with pytest.raises(StoppedError):
        train(clicks, GRID, lane_learners=LocalLanes(2), progress=stop, **saving, **options)
    assert seen == [True] * 4
    resumed = train(clicks, GRID, lane_learners=LocalLanes(2), resume=True, progress=seen.append, **saving, **options)
    assert 0 < len(seen) - 4 < 20
    assert saved(tmp_path, resumed) == saved(tmp_path, alone)


def test_the_first_row_of_any_part_whose_loss_is_not_finite_is_named():
    model = Mixture(4, GRID)
    parts = split_lanes(model, 2)
    found = [(np.zeros((3, part.lanes.size)), count) for part, count in zip(parts, (2, 1), strict=True)]
    with pytest.raises(ValueError, match="loss: got a value or slope that is not finite in row 1, whose label is 7"):
        margins_of(parts, found, np.array([5.0, 7.0, 9.0]))


@pytest.mark.parametrize(("model", "message"), [
    (Linear(4, Settings()), "learners: got 'one setting', expected several settings"),
    (Linear(4, Settings("softmax"), classes=5), "learners: got \"one setting of the joint loss 'softmax'\""),
    (Mixture(4, default_grid()), "learners: got 'settings with filters', expected a grid"),
])  # fmt: skip
def test_models_that_cannot_be_divided_are_refused(model, message):
    with pytest.raises(ValueError, match=message):
        split_lanes(model, 2)


def test_lanes_are_not_learned_apart_together_with_shards(clicks):
    with pytest.raises(ValueError, match="lane_learners: got"):
        train(clicks, GRID, merge=Merging(), lane_learners=LocalLanes(2))
