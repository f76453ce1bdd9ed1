"""Model files: a learner, a serving model or the models of all keys, with its names and other content."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from forel.data import Names
from forel.learner.keyed import KeyedModels
from forel.store.atomic import Path
from forel.store.files import ModelFile, Rows, open_file, write_file
from forel.store.header import damaged, validated_extra
from forel.store.learners import LEARNERS, pack_keyed, pack_learner, unpack_keyed, unpack_learner
from forel.store.serving import ServingModel, pack_serving, unpack_serving
from forel.validation import refuse

__all__ = ["Content", "read_model", "write_model"]

EXTRA_ARRAY = "beside."  # prefix of additional arrays in a file
NAMES = ("names.slots", "names.prints", "names.lengths", "names.text")
# The reader of each kind of model, from an open file and a user-defined loss.
UNPACK: dict[str, Callable[[ModelFile, Any], Any]] = {
    **dict.fromkeys(LEARNERS, unpack_learner),
    "serving": lambda file, loss: unpack_serving(file),
    "keyed": unpack_keyed,
}


class Content(NamedTuple):
    """The content of a model file.

    Parameters
    ----------
    learner : a learner, a serving model, or the models of all keys
    extra : JSON content that was saved with it
    names : names of features by slot, if they were saved
    estimator : attributes of the scikit-learn estimator or river model, as JSON
    arrays : additional arrays by name
    """

    learner: Any
    extra: dict[str, Any]
    names: Names | None
    estimator: dict[str, Any] | None
    arrays: dict[str, NDArray[np.float64]]


def write_model(
    path: Path,
    learner: Any,
    extra: Mapping[str, Any],
    names: Names | None = None,
    estimator: Mapping[str, Any] | None = None,
    arrays: Mapping[str, NDArray[np.float64]] | None = None,
) -> None:
    """Write a model to a file, which is replaced atomically.

    >>> import pathlib, tempfile
    >>> from forel.learner.learner import Learner
    >>> from forel.learner.settings import Settings
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "model.forel"
    >>> write_model(path, Learner(2, Settings(alpha=1.0)), {"a": 1})
    >>> read_model(path).extra
    {'a': 1}
    """
    header, packed = _pack(learner)
    bits = None if names is None else names.bits
    header |= {"extra": validated_extra(extra), "estimator": estimator, "bits": bits}
    name_arrays = {} if names is None else _pack_names(names, learner)
    others = {EXTRA_ARRAY + name: np.asarray(array, np.float64) for name, array in (arrays or {}).items()}
    write_file(path, header, {**packed, **name_arrays, **others})


def read_model(path: Path, loss: Any = None) -> Content:
    """Return the content of a file; ``loss`` is the function of a user-defined loss."""
    with open_file(path) as file:
        header = file.header
        learner = UNPACK[header["kind"]](file, loss)
        names = None if header["bits"] is None else _unpack_names(file, header["bits"])
        others = [name for name in file.checks if name.startswith(EXTRA_ARRAY)]
        arrays = {name.removeprefix(EXTRA_ARRAY): file.array(name, np.float64, file.shape(name)) for name in others}
        if file.used != set(file.checks):
            raise damaged("there are unexpected arrays")
        return Content(learner, header["extra"], names, header["estimator"], arrays)


def _pack(learner: Any) -> tuple[dict[str, Any], Mapping[str, NDArray[Any] | Rows]]:
    """Return the header and the arrays of a model."""
    if isinstance(learner, ServingModel):
        return pack_serving(learner)
    if isinstance(learner, KeyedModels):
        return pack_keyed(learner)
    if getattr(learner, "kind", None) in LEARNERS:
        return pack_learner(learner)
    expected = "a learner, a fitted estimator, a river model, or the result of forel.train or forel.load"
    raise refuse("model", type(learner).__name__, expected)


def _pack_names(names: Names, learner: Any) -> dict[str, NDArray[Any]]:
    """Return names as arrays, of a serving model those of the slots that it keeps."""
    slots, prints, lengths, text = names.pack()
    if isinstance(learner, ServingModel):
        mask = np.isin(slots, learner.slots)
        text, slots, prints, lengths = text[np.repeat(mask, lengths)], slots[mask], prints[mask], lengths[mask]
    return dict(zip(NAMES, (slots.astype(np.uint32), prints, lengths.astype(np.uint32), text), strict=True))


def _unpack_names(file: ModelFile, bits: int) -> Names:
    """Return the names of a file."""
    count = file.shape(NAMES[0])[0]
    slots, prints, lengths = (file.array(name, np.uint32, (count,)) for name in NAMES[:3])
    text = file.array(NAMES[3], np.uint8, (int(lengths.sum(dtype=np.int64)),))
    if count and (int(slots[-1]) >= 1 << bits or not (slots[1:] > slots[:-1]).all()):
        raise damaged("the slots of names are not increasing, or exceed the bits")
    return Names.unpack(bits, slots, prints, lengths, text)
