"""River models from files: the model that was saved, or one that continues a model trained from files."""

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

from forel.learner.learner import Learner
from forel.learner.settings import Settings
from forel.river.classifier import LOSSES as CLASSIFICATION
from forel.river.classifier import LinearClassifier
from forel.river.experts import Experts
from forel.river.model import model_from
from forel.river.packing import UNSET
from forel.river.regressor import LOSSES as REGRESSION
from forel.river.regressor import LinearRegressor
from forel.river.rows import Hashing
from forel.store.named_rows import slots_of_names, unpack_value
from forel.training.model import as_model
from forel.training.statements import coverage_of
from forel.validation import refuse

__all__ = ["model_of"]

CLASSES: dict[str, Any] = {"LinearClassifier": LinearClassifier, "LinearRegressor": LinearRegressor}
HASHING = ("bits", "kinds", "label", "importance", "names")  # read options that apply to dicts, or have no effect


def model_of(source: Any) -> LinearClassifier | LinearRegressor:
    """Return the river model that was saved, or a river model of one trained from files; both can continue learning.

    ``source`` is a path, or the result of :func:`forel.load` or :func:`forel.train`.

    A model trained from files reads dicts as it reads files: names are hashed to the same slots, and strings are
    categories. Its classes are False and True.

    >>> import pathlib, tempfile, forel
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "model.forel"
    >>> model = LinearClassifier(alpha=1.0)
    >>> model.learn_one({"offer": 1, "viagra": 1}, "spam")
    >>> forel.save(path, model)
    >>> model_of(path).weights == model.weights
    True
    """
    stored = as_model(source)
    learner, known = stored.learner, stored.estimator or {}
    one = isinstance(learner, Learner) and learner.mixture is None and learner.settings.n_settings == 1
    if not one and not (isinstance(learner, Learner) and learner.mixture is not None and learner.share is None):
        raise refuse("stored", learner, "one linear model, or a mixture without share; save one of others by only()")
    learner = learner.without_full_filters()
    linear, reading = learner.unmixed, stored.extra.get("reading", {})
    if "class" not in known:
        known = _from_files(linear, reading)
    if known["class"] not in CLASSES:
        raise refuse("stored", known["class"], "a river model; forel.sklearn.estimator_of returns estimators")
    hashing = None if reading.get("named") else Hashing(reading["bits"], reading.get("kinds", {}))
    kind = CLASSES[known["class"]]
    parameters = {f.name: getattr(linear.settings, f.name) for f in fields(Settings) if "filters" not in f.name}
    parameters.update(known.get("parameters") or ({} if one else dict.fromkeys(UNSET)))
    bits = None if hashing is None else hashing.bits
    model: LinearClassifier | LinearRegressor = kind(
        **parameters, bits=bits, dtype=linear.dtype.name, certified=linear.certified
    )
    if linear.settings not in (made := model._learner.lanes.settings, replace(made, filters=())):
        raise refuse("stored", linear.settings.names, "one setting, or the default mixture")
    mixture = None if learner.mixture is None else learner.mixture.copy()
    experts = None if mixture is None else Experts(linear.settings, linear.classes, mixture)
    if isinstance(model, LinearRegressor) and (coverage := coverage_of(stored.extra)) is not None:
        vars(model).update(_coverage=coverage, interval=coverage.level)
    model._y_name = known.get("y_name")
    model._learner.__setstate__(
        {
            "hashing": hashing,
            "names": slots_of_names(stored.estimator or {}, stored.names) if hashing is None else {},
            "codes": {unpack_value(label): float(code) for label, code in known["classes"]},
            "class_starts": tuple((int(rounds), float(weight)) for rounds, weight in known["class_starts"]),
            "model": model_from(linear.state.copied(), experts),
        }
    )
    return model


def _from_files(linear: Learner, reading: Mapping[str, Any]) -> dict[str, Any]:
    """Return the attributes of a river model for a model trained from files."""
    settings, loss = linear.settings, linear.settings.loss_function.name
    if linear.classes is not None or loss not in (*CLASSIFICATION, *REGRESSION):
        raise refuse("stored", settings.loss, "one model of two classes or of numbers")
    other = next((name for name in reading if name not in HASHING), None)
    if other is not None or reading.get("bits") is None:
        got = "a learner by itself" if other is None else f"a model trained with {other}={reading[other]!r}"
        raise ValueError(f"stored: got {got}, expected a model trained from hashed names without other options")
    if loss in REGRESSION:
        return {"class": "LinearRegressor", "classes": [], "class_starts": []}
    low = -1.0 if settings.signed else 0.0
    return {"class": "LinearClassifier", "classes": [[False, low], [True, 1.0]], "class_starts": [[0, 0.0], [0, 0.0]]}
