"""Names of features in model files."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from forel.data import Names
from forel.store.files import ModelFile
from forel.store.header import damaged, header_int
from forel.validation import refuse

__all__ = ["pack_names", "unpack_names"]

NAMES = ("names.slots", "names.prints", "names.lengths", "names.text")


def pack_names(names: Names, kept: NDArray[Any] | None) -> dict[str, NDArray[Any]]:
    """Return names as arrays: those of the ``kept`` slots, or of all slots if None."""
    slots, prints, lengths, text = names.pack()
    if kept is not None:
        mask = np.isin(slots, kept)
        text, slots, prints, lengths = text[np.repeat(mask, lengths)], slots[mask], prints[mask], lengths[mask]
    return dict(zip(NAMES, (slots.astype(np.uint32), prints, lengths.astype(np.uint32), text), strict=True))


def unpack_names(file: ModelFile, bits: Any) -> Names:
    """Return the names of a file."""
    if not 1 <= header_int("bits", bits) <= 31:
        raise refuse("bits", bits, "1 to 31")
    count = file.shape(NAMES[0])[0]
    slots, prints, lengths = (file.array(name, np.uint32, (count,)) for name in NAMES[:3])
    text = file.array(NAMES[3], np.uint8, (int(lengths.sum(dtype=np.int64)),))
    if count and (int(slots[-1]) >= 1 << bits or not (slots[1:] > slots[:-1]).all()):
        raise damaged("the slots of names are not increasing, or exceed the bits")
    return Names.unpack(bits, slots, prints, lengths, text)
