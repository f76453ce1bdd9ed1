"""The doors: save a model, load a model."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forel.data import Names, ReadOptions
from forel.learner.guard import unchanged
from forel.learner.settings import Settings
from forel.store.files import File, Path, Unreadable, opened, write
from forel.store.header import count_of, extra_of, unpack_settings
from forel.store.predicting import Serving, pack_serving, unpack_serving
from forel.store.trainer import LEARNERS, pack, unpack
from forel.validation import refuse

__all__ = ["Stored", "load", "save"]

BESIDE = "beside."
NAMES = ("names.slots", "names.prints", "names.lengths", "names.text")


@dataclass(frozen=True, eq=False)
class Stored:
    """What a file held: the model, and what was kept with it."""

    model: Any
    extra: dict[str, Any] = field(default_factory=dict)
    names: Names | None = field(default=None, repr=False)
    estimator: dict[str, Any] | None = field(default=None, repr=False)
    arrays: dict[str, NDArray[np.float64]] = field(default_factory=dict, repr=False)

    @property
    def settings(self) -> Settings:
        """The settings that the model was trained with."""
        settings = self.model.settings
        return unpack_settings(settings) if isinstance(settings, Mapping) else settings

    @property
    def read_options(self) -> ReadOptions:
        """The options that data for the model is read with: those of its training."""
        stored = self.extra.get("reading", {})
        if isinstance(stored, dict) and stored.get("named"):
            expected = "one with hashed names (bits); forel.doors.river.model_of(stored) returns the river model"
            raise ValueError(f"model: got a river model with a slot for each name, expected {expected}")
        bits = {"bits": max(1, (self.model.features - 1).bit_length())}
        return ReadOptions.from_json({**bits, **stored} if isinstance(stored, dict) else stored, owner="model")


def save(
    path: Path,
    model: Any,
    extra: Mapping[str, Any] | None = None,
    names: Names | None = None,
    arrays: Mapping[str, NDArray[np.float64]] | None = None,
) -> None:
    """Write a model to one file; equal models give equal bytes, and an older file is replaced only by a whole one.

    Parameters
    ----------
    path : of the file
    model : a :class:`forel.learner.linear.Linear` or :class:`forel.learner.mixture.Mixture`, a fitted estimator, a
        river model, or the result of :func:`forel.store.serving`
    extra : whatever should be kept with it, as JSON holds it
    names : of the slots, such as a reader kept; of a model for serving only those of its weights
    arrays : more numbers to be kept with it, of float64

    >>> import tempfile, pathlib
    >>> from forel.learner.linear import Linear, Settings
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "model.forel"
    >>> save(path, Linear(2, Settings()), extra={"labels": ["ham", "spam"]})
    >>> load(path).extra
    {'labels': ['ham', 'spam']}
    """
    with unchanged(model):
        kept = model.__stored__() if hasattr(model, "__stored__") else Stored(model)
        with unchanged(kept.model):
            more = kept.extra if extra is None else {**kept.extra, **extra_of(extra)}
            _save(path, kept.model, kept.estimator, more, kept.names if names is None else names, arrays)


def _save(
    path: Path,
    model: Any,
    estimator: dict[str, Any] | None,
    extra: Mapping[str, Any] | None,
    names: Names | None,
    arrays: Mapping[str, NDArray[np.float64]] | None,
) -> None:
    if not isinstance(model, Serving) and getattr(model, "kind", None) not in LEARNERS:
        raise refuse(
            "model", model, "a forel.learner.linear.Linear or Mixture, a fitted estimator, or a forel.store.Serving"
        )
    kept = extra_of(extra)
    header, parts = pack_serving(model) if isinstance(model, Serving) else pack(model)
    only = model.slots if isinstance(model, Serving) else None
    named = {} if names is None else _pack_names(names, only)
    bits = None if names is None else names.bits
    beside = {BESIDE + name: np.asarray(array, np.float64) for name, array in (arrays or {}).items()}
    write(path, {**header, "extra": kept, "estimator": estimator, "bits": bits}, {**parts, **named, **beside})


def load(path: Path, loss: Any = None) -> Stored:
    """Read a model from a file, to go on learning or to predict.

    ``loss`` is needed for a learner with a loss of your own, which a file knows only by name: the same function.
    Nothing in a file is ever run. A file that is cut, damaged, foreign or newer is an ``Unreadable`` that says so.
    """
    with opened(path) as file:
        header = file.header
        model = unpack_serving(file) if header["kind"] == "serving" else unpack(file, loss)
        if not isinstance(header["extra"], dict) or not isinstance(header["estimator"], dict | None):
            raise Unreadable("the header says what no model says; take another copy, or train again")
        names = None if header["bits"] is None else _unpack_names(file, header["bits"])
        beside = file.named(BESIDE)
        arrays = {name.removeprefix(BESIDE): file.array(name, np.float64, file.shape(name)) for name in beside}
        if file.used != set(header["checks"]):
            raise Unreadable("there are arrays that such a model does not have; take another copy, or train again")
        return Stored(model, header["extra"], names, header["estimator"], arrays)


def _pack_names(names: Names, only: NDArray[Any] | None) -> dict[str, NDArray[Any]]:
    slots, prints, lengths, text = names.packed()
    if only is not None:
        kept = np.isin(slots, only)
        text, slots, prints, lengths = text[np.repeat(kept, lengths)], slots[kept], prints[kept], lengths[kept]
    return dict(zip(NAMES, (slots.astype(np.uint32), prints, lengths.astype(np.uint32), text), strict=True))


def _unpack_names(file: File, bits: Any) -> Names:
    if not 1 <= count_of("bits", bits) <= 31:
        raise refuse("bits", bits, "1 to 31")
    held = file.shape(NAMES[0])[0]
    slots, prints, lengths = (file.array(name, np.uint32, (held,)) for name in NAMES[:3])
    text = file.array(NAMES[3], np.uint8, (int(lengths.sum(dtype=np.int64)),))
    if held and (int(slots[-1]) >= 1 << bits or not (slots[1:] > slots[:-1]).all()):
        raise Unreadable("the slots of names do not rise, or reach beyond the bits; take another copy, or train again")
    return Names.unpacked(bits, slots, prints, lengths, text)
