"""Models under threads: answers are those of one thread, every round counts, and a state is never seen half changed.

``python -m tests.fuzz.threads --seconds 60`` goes on for longer. Each scenario makes a model, starts four threads on
it while the interpreter switches between them a hundred times as often as usual, and checks what came out.
"""

import copy
import pickle
import random
import sys
import threading
import time
import tracemalloc

import numpy as np

from forel.learner.learner import Learner
from forel.learner.settings import Settings
from forel.sklearn import FTRLClassifier
from tests.fuzz.command import command

THREADS, SWITCH = 4, 1e-5


def together(*tasks):
    """Run each function on a thread, start them together, and raise the first exception."""
    barrier, errors = threading.Barrier(len(tasks)), []

    def run(task):
        barrier.wait()
        try:
            task()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(task,)) for task in tasks]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


def dicts(rng, count, names=40, longest=9):
    return [{f"f{rng.randrange(names)}": rng.random() for _ in range(rng.randrange(1, longest))} for _ in range(count)]


def classifier(rng, rows, classes=2, **options):
    from forel.river import LinearClassifier

    model = LinearClassifier(**{"alpha": 1.0, **options})
    for k, x in enumerate(rows):
        model.learn_one(x, f"class {k if k < classes else rng.randrange(classes)}")
    return model


def predictions_beside_predictions(rng):
    """Every thread gets the answers to its own rows."""
    for model in (
        classifier(rng, dicts(rng, 50)),
        classifier(rng, dicts(rng, 50), classes=3),
        classifier(rng, dicts(rng, 50), bits=6),
    ):
        rows = dicts(rng, 200)
        alone = [(model.predict_proba_one(x), model.predict_one(x)) for x in rows]

        def check(model=model, rows=rows, alone=alone):
            for k in rng.sample(range(len(rows)), len(rows)):
                assert (model.predict_proba_one(rows[k]), model.predict_one(rows[k])) == alone[k]

        together(*[check] * THREADS)


def names_and_rows_grow(rng):
    """Learning from several threads loses no row and no name, and predictions meanwhile are numbers."""
    from forel.river import LinearClassifier

    model, each = LinearClassifier(bits=rng.choice([None, None, 5])), 120
    done = threading.Event()

    def learn(who):
        for k in range(each):
            x = {f"{who} {j}": 1.0 for j in range(k)}
            model.learn_one({**x, "shared": 1.0, f"new {k}": 1.0, (who, k): 1}, k % 2)

    def predict():
        while not done.is_set():
            size = rng.randrange(300)
            found = model.predict_proba_one({f"0 {j}": 1.0 for j in range(size)})
            assert not found or 0.999 < sum(found.values()) < 1.001

    watcher = threading.Thread(target=predict)
    watcher.start()
    try:
        together(*[lambda who=who: learn(who) for who in range(THREADS)])
    finally:
        done.set()
        watcher.join()
    assert model._learner.state.rounds == THREADS * each
    if model.bits is None:
        names = model._learner.names
        assert len(names) == THREADS * (each - 1) + 1 + each + THREADS * each
        assert list(names.values()) == list(range(1, len(names) + 1))
        assert len(model.weights) == len(names) < model._learner.state.features


def beside_learning(learn, predict, states):
    """One thread learns step by step; the others see only states that there are between steps, and never go back."""
    done = threading.Event()

    def watch():
        last = 0
        while not done.is_set():
            found = predict()
            last = states.index(found, last)

    def work():
        try:
            for step in range(len(states) - 1):
                learn(step)
        finally:
            done.set()

    together(work, *[watch] * (THREADS - 1))
    assert predict() == states[-1]


def states_of(learn, predict, steps):
    """Return the predictions before the first step and after each step."""
    states = [predict()]
    for step in range(steps):
        learn(step)
        states.append(predict())
    return states


def whole(make, learn, predict, steps):
    """Compare what threads see with a model of one thread's own."""
    sequential, model = make(), make()
    states = states_of(lambda step: learn(sequential, step), lambda: predict(sequential), steps)
    beside_learning(lambda step: learn(model, step), lambda: predict(model), states)


def answers_of_whole_states(rng):
    """A prediction beside learning is that of the model before or after a row, new names and classes included."""
    from forel.river import LinearClassifier

    rows, classes = dicts(rng, 300, names=2000, longest=30), rng.choice([2, 2, 4])
    labels = [rng.randrange(min(classes, 1 + k // 20)) for k in range(len(rows))]
    probe = {name: value for x in rows[::7] for name, value in x.items()}
    whole(
        LinearClassifier,
        lambda model, step: model.learn_one(rows[step], labels[step]),
        lambda model: model.predict_proba_one(probe),
        len(rows),
    )


def copies_are_whole(rng):
    """A pickle or copy made during learning is a consistent model, and can continue."""
    rows = dicts(rng, 200, names=300)
    probe = rows[0]

    def answer(model):
        other = pickle.loads(pickle.dumps(model)) if rng.random() < 0.5 else copy.deepcopy(model)
        return other.predict_proba_one(probe), other._learner.state.rounds

    from forel.river import LinearClassifier

    whole(LinearClassifier, lambda model, step: model.learn_one(rows[step], step % 2), answer, len(rows))


def blocks(rng):
    """Learner and Learner: margins are those of whole states, and pickles too."""
    X = np.random.default_rng(rng.randrange(100)).normal(size=(60, 5, 8)).astype(np.float32)
    y = (X[:, :, 0] > 0).astype(np.float32)
    makers = lambda: Learner(8, Settings()), lambda: Learner(8, Settings(alpha=(0.1, 1.0)))
    for make in makers:
        whole(
            make,
            lambda model, step: model.learn(X[step], y[step]),
            lambda model: model.margins(X[0]).tolist(),
            len(X),
        )
    whole(
        makers[1],
        lambda model, step: model.learn(X[step], y[step]),
        lambda model: pickle.loads(pickle.dumps(model)).posterior.tolist(),
        len(X),
    )


def rounds_are_counted(rng):
    """Learning from several threads is learning in some order: no round is lost, and sums add up."""
    X = np.random.default_rng(0).normal(size=(5, 8)).astype(np.float32)
    y, turns = np.array([0, 1, 0, 1, 1]), 60
    linear, mixed, estimator = Learner(8, Settings()), Learner(8, Settings(alpha=(0.1, 1.0))), FTRLClassifier(alpha=1.0)
    lost = []

    def work():
        for _ in range(turns):
            lost.append(float(linear.learn(X, y)[0]))
            linear.progress(X, y)
            mixed.learn(X, y)
            mixed.progress(X, y, again=True)
            estimator.partial_fit(X, y, classes=[0, 1])
            estimator.predict(X)

    together(*[work] * THREADS)
    count = THREADS * turns
    assert linear.rounds == mixed.rounds == 2 * 5 * count
    assert mixed.first_pass_rows == estimator.t_ == 5 * count
    assert sum(lost) < float(linear.loss[0])
    assert np.isfinite(estimator.progressive_loss_)
    assert mixed.guarantee().rounds == 5 * count


def memory_stays_level(rng):
    """Buffers of threads that are gone, and of states that were replaced, are not kept."""
    model = classifier(rng, dicts(rng, 50, names=2000))
    rows = dicts(rng, 100, names=2000)

    def work():
        for x in rows:
            model.predict_proba_one(x)
            model.learn_one(x, "class 0")

    together(*[work] * THREADS)
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        for _ in range(5):
            together(*[work] * THREADS)
        grown = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert grown < 200_000, grown
    assert len(model._learner._idle) <= THREADS


SCENARIOS = (
    predictions_beside_predictions,
    names_and_rows_grow,
    answers_of_whole_states,
    copies_are_whole,
    blocks,
    rounds_are_counted,
    memory_stays_level,
)


def run(seconds: float, seed: int = 0) -> dict[str, int]:
    """Run scenarios in turns for some seconds, each at least once, and return and print how often each was run."""
    rng, until, tried = random.Random(seed), time.monotonic() + seconds, dict.fromkeys(SCENARIOS, 0)
    before = sys.getswitchinterval()
    sys.setswitchinterval(SWITCH)
    try:
        while time.monotonic() < until or not all(tried.values()):
            scenario = min(SCENARIOS, key=tried.__getitem__)
            scenario(rng)
            tried[scenario] += 1
    finally:
        sys.setswitchinterval(before)
    named = {scenario.__name__: count for scenario, count in tried.items()}
    print(f"threads, seed {seed}: {', '.join(f'{name} {count}' for name, count in named.items())}")
    return named


def main() -> None:
    command(run, __doc__)


if __name__ == "__main__":
    main()
