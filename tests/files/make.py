"""Small files of every kind of learner, of a run and of a checkpoint, for tests that read, damage or resume them."""

import io
import pathlib
import shutil
import tempfile
from unittest import mock

import numpy as np

from forel.learner.learner import Learner
from forel.learner.settings import Settings
from forel.losses import Quantile
from forel.sklearn import FTRLClassifier
from forel.store import serving_model
from forel.training.model import load, save
from forel.training.scoring import predict_blocks
from forel.training.train import train

FEATURES = 24
TEXT = "".join(f"{k % 2} |site s{k % 5} s{k * k % 7} |user u{k % 11}:{1 + k % 3} age:{k % 4}.5\n" for k in range(120))
MIXED = Settings("logistic", rate="scale_free", alpha=(0.1, 0.5, 2.0), l1=(0.0, 0.1, 0.5))
READING = {"bits": 8, "names": True, "block_bytes": 400, "certificate": True, "passes": 2, "holdout": 5}
LEARNERS = {
    "linear": lambda: Learner(FEATURES, Settings(alpha=0.5, l1=0.05), certified=True),
    "float64": lambda: Learner(
        FEATURES, Settings("squared", "centered", alpha=0.2, bias=False, seed=3), dtype="float64"
    ),
    "quantile": lambda: Learner(FEATURES, Settings(Quantile(0.9), "mirror", "adagrad", alpha=0.1)),
    "scale_free": lambda: Learner(FEATURES, Settings(rate="scale_free", l2=0.1)),
    "every_round": lambda: Learner(FEATURES, Settings("hinge", "mirror", l1=0.01, penalty_weight="every")),
    "lanes": lambda: Learner(FEATURES, Settings("poisson", alpha=(0.1, 0.2), radius=1.0), mixed=False),
    "mixture": lambda: Learner(FEATURES, MIXED, certified=True),
    "drifting": lambda: Learner(FEATURES, Settings(alpha=(0.1, 1.0)), share=0.01),
    "softmax": lambda: Learner(FEATURES, Settings("softmax"), 3),
    "one_against_rest": lambda: Learner(FEATURES, Settings(alpha=0.3), 3, certified=True),
}


class Stopped(Exception):
    """Training ends here, as if the power had failed."""


def rows(count, first=0):
    """Return sparse rows whose values are multiples of a quarter, and numbers for labels."""
    k, j = np.arange(first, first + count)[:, None], np.arange(FEATURES)[None, :]
    X = np.where((k * 7 + j * j) % 5 == 0, ((k + 3 * j) % 9 - 4) / 4, 0.0)
    return X, (k[:, 0] * k[:, 0] // 3 + k[:, 0]) % 3


def labels(model, numbers):
    """Return labels that a model's loss takes."""
    if model.classes is not None:
        return numbers
    return np.where(numbers == 1, 1, -1 if model.settings.signed else 0)


def learn(model, count, first=0):
    """Let a model learn from some rows."""
    X, numbers = rows(count, first)
    model.learn(X, labels(model, numbers))
    return model


def training(folder, **more):
    """Train on the same text, under a name and a time that are the same wherever it is."""
    path = pathlib.Path(folder) / "clicks.vw"
    path.write_text(TEXT)
    with mock.patch("forel.training.passes.fingerprints", return_value=[["clicks.vw", len(TEXT), 0]]):
        return train(path, MIXED, **READING, **more)


def write_all(folder):
    """Write every file."""
    for name, made in LEARNERS.items():
        save(folder / f"{name}.forel", learn(made(), 40), extra={"name": name})
    save(folder / "serving.forel", serving_model(learn(LEARNERS["linear"](), 40)))
    save(folder / "serving_float16.forel", serving_model(learn(LEARNERS["softmax"](), 40), dtype="float16"))
    X, numbers = rows(40)
    estimator = FTRLClassifier(alpha=0.5, certified=True, shuffle=False, random_state=None, lanes=16)
    estimator.fit(X, np.array(["ham", "spam", "eggs"])[numbers])
    save(folder / "estimator.forel", estimator)
    with tempfile.TemporaryDirectory() as scratch:
        training(scratch).save(folder / "trained.forel")
        blocks = iter(range(14))  # into the second pass

        def stop(_):
            if next(blocks, None) is None:
                raise Stopped

        try:
            training(scratch, checkpoint=folder / "checkpoint.forel", checkpoint_every=1, progress=stop)
        except Stopped:
            return
    raise AssertionError("training ended before it was stopped")


def found(path):
    """Return the predictions of a file, and for learners those after more rows."""
    stored = load(path)
    model = stored.learner
    if path.stem in ("trained", "checkpoint"):
        margins = [m for _, m in predict_blocks(stored, text())]
        return {"margins": np.concatenate(margins).tolist(), "names": sorted(stored.names[k] for k in stored.names)}
    X, _ = rows(8, 100)
    first = {"margins": model.margins(X).tolist()}
    if path.stem.startswith("serving"):
        return {**first, "predictions": model.predict(X).tolist()}
    return {**first, "after": learn(model, 10, 40).margins(X).tolist()}


def resumed(folder, checkpoint):
    """Return the predictions of the model after resuming from a checkpoint."""
    copy = pathlib.Path(folder) / "copy"
    shutil.copy(checkpoint, copy)
    trained = training(folder, checkpoint=copy, resume=True, checkpoint_every=10**6)
    return np.concatenate([m for _, m in predict_blocks(trained, text())]).tolist()


def text():
    """Return the text as a file."""
    return io.BytesIO(TEXT.encode())
