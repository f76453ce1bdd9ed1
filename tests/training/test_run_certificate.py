"""The certificate of a run: the best of its passes over the same rows, in a checkpoint too."""

import json
from types import SimpleNamespace

import numpy as np
import pytest

import forel
from forel.learner.certify import CertificateSums
from forel.learner.learner import Learner
from forel.learner.settings import Settings
from forel.training.run_certificate import CertificateOfRun
from tests.fuzz import oracle
from tests.learner.test_dual import N, stream

pytestmark = pytest.mark.usefixtures("interpreted")


def certificate_of(model, rows, loss):
    """The certificate of a run whose first pass has these rows and this total loss, from the learner's sums alone."""
    first = SimpleNamespace(report=lambda: SimpleNamespace(rows=rows, loss=loss, weight=1.0))
    found = CertificateOfRun(model, SimpleNamespace(first=first), CertificateSums())
    found._gram = None
    return found


def three_passes(loss, make, alpha, **options):
    """A model after three passes, its certificate after each, and the rows."""
    X, y, weight = stream(loss)
    model = make(N, Settings(loss, alpha=alpha, **options), dtype=np.float64, certified=True)
    run, first, after = None, None, []
    for k in range(3):
        margins = model.progress(X, y, weight, again=k > 0)[:, 0]
        first = (len(y), float(weight @ model.settings.loss_function(margins, y))) if k == 0 else first
        run = run or certificate_of(model, *first)
        run.end(k + 1, last=k == 2)
        after.append((run.floor, np.append(model.weights[:, 0], model.bias[0])))
    return model, after, (X, y, weight), first


@pytest.mark.parametrize("loss", ["logistic", "squared", "poisson", "hinge"])
@pytest.mark.parametrize(("make", "alpha"), [(Learner, 0.1), (Learner, (0.01, 0.1, 1.0))])
def test_every_pass_gives_floors_of_the_rows_and_the_best_counts(loss, make, alpha):
    model, after, (X, y, weight), first = three_passes(loss, make, alpha, rate="scale_free")
    rows, scales = np.column_stack([X, np.ones(len(X))]), np.append(np.abs(X).max(axis=0), 1.0)
    assert model.rounds == 3 * len(y)
    own, known = first[1] / weight.sum(), "these 2^2 hashed features"
    for one, learned in after:
        assert oracle.certificate_violation(one.summary(), loss, rows, y, weight, own, learned, scales, known) is None
    after = [one for one, _ in after]
    norm = float(np.linalg.norm(learned * scales))
    best = [max(point.floor(norm) for point in one.points) for one in after]
    assert best[-1] >= max(point.floor(norm) for point in after[-2].points)
    for factor in (0.1, 1.0, 3.0):
        least = oracle.least_average(loss, rows / scales, y, weight, factor * norm) * weight.sum()
        assert all(point.floor(factor * norm) <= least + 1e-9 * abs(least) for point in after[-1].points)


def test_later_passes_tighten_the_floor():
    _, after, (_, _, weight), _ = three_passes("logistic", Learner, 0.1)
    floors = [max(point.floor(2.0) for point in one.points) / weight.sum() for one, _ in after]
    assert floors[2] > floors[0] + 0.01


def test_a_checkpoint_stores_the_certificate():
    model, after, (X, y, weight), first = three_passes("logistic", Learner, (0.1, 1.0))
    X, y, weight = stream("logistic")
    again = Learner(N, model.settings, dtype=np.float64, certified=True)
    again.learn(X, y, weight)
    run = certificate_of(again, *first)
    assert run.pack()[0] is None  # in the first pass, training knows where it started
    run.end(1, last=False)
    for k in range(2):
        again.progress(X, y, weight, again=True)
        content, arrays = run.pack()
        run = certificate_of(again, *first)
        run.unpack(json.loads(json.dumps(content)), arrays)
        run.end(k + 2, last=k == 1)
    assert run.floor.summary() == after[-1][0].summary()
    assert run.floor.frontier() == after[-1][0].frontier()


def test_passes_with_other_rows_are_left_out():
    X, y, weight = stream("logistic")
    model = Learner(N, Settings(alpha=0.1), dtype=np.float64, certified=True)
    model.learn(X, y, weight)
    run = certificate_of(model, len(y), float(model.loss[0]))
    run.end(1, last=False)
    summary = run.floor.summary()
    model.learn(X[:5], y[:5], weight[:5])
    run.end(2, last=True)
    assert run.floor.summary() == summary


def test_a_run_of_several_passes_compares_with_the_final_model():
    X, y, weight = stream("logistic")
    rows = [
        {"y": b, "w": c, **dict(zip("abcd", a.tolist(), strict=True))} for a, b, c in zip(X, y, weight, strict=True)
    ]
    rows = [{name: float(value) for name, value in row.items()} for row in rows]
    trained = forel.train(
        rows, Settings(alpha=0.1), label="y", importance="w", bits=8, certificate=True, passes=3, holdout=5
    )
    first = f"this model had an average loss per unit of importance of {trained.report.loss:.4f} on these"
    assert trained.training.certificate.startswith(f"{first} {len(y) * 4 // 5} rows. ")


@pytest.mark.parametrize("options", [{"loss": "logistic"}, {"loss": "squared"}, {"settings": Settings(alpha=1.0)}])
def test_rows_without_importance_prove_nothing(options):
    rows = [{"a": 1.0, "w": 0.0, "y": 1.0}, {"a": 2.0, "w": 0.0, "y": 0.0}] * 3
    trained = forel.train(rows, label="y", importance="w", bits=4, certificate=True, **options)
    assert trained.training.certificate.endswith("on these rows, because no row has a positive importance")
    if "loss" in options:
        assert str(trained.learner.guarantee()).endswith("because no row has a positive importance")
    assert [text for _, _, text in trained.report.lines("loss")] == ["0", "–"]
    more = forel.train([{"a": 1.0, "w": 2.0, "y": 1.0}], importance="w", model=trained, certificate=True)
    assert "had an average loss" in more.training.certificate


@pytest.mark.parametrize("names", [False, True])
def test_certificates_say_how_many_slots_have_several_names(names):
    rows = [{"user": f"u{k}", "y": k % 2} for k in range(300)]
    trained = forel.train(rows, Settings(alpha=0.1), label="y", bits=10, names=names, certificate=True)
    slots = [forel.data.slot(f"u{k}", "user", bits=10) for k in range(300)]
    counts = np.unique(slots, return_counts=True)[1]
    of_names = "these 2^10 hashed features ("
    for words in {trained.training.certificate, trained.certificate}:
        count, rest = words.partition(of_names)[2].split(" slots have several names)")
        if names:
            assert count == str((counts > 1).sum())
        else:
            assert count == f"about {oracle.shared_slots('2^10', counts.size):.0f}"
            assert abs(int(count.removeprefix("about ")) - (counts > 1).sum()) < 10
        assert rest.startswith(" with weights")


@pytest.mark.parametrize(("bits", "advised"), [(16, False), (3, True)])
def test_fewer_collisions_are_advised_only_where_slots_have_several_names(bits, advised):
    rows = [{"a": f"v{k % 9}", "y": k % 9 in (0, 3, 4, 8)} for k in range(300)]
    trained = forel.train(rows, Settings(alpha=1.0), label="y", bits=bits, names=True, certificate=True)
    assert (trained.names.collisions > 0) == advised
    assert "may be left for more passes" in trained.training.certificate
    assert ("fewer collisions" in trained.training.certificate) == advised
