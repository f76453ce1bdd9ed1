"""Read options of a run: those of the stored model, of the cache, and of the caller."""

from collections.abc import Mapping
from typing import Any

from forel.data import ReadOptions
from forel.store import Stored
from forel.training.row_cache import cached_options

__all__ = ["options_for", "updated_options"]


def options_for(source: Any, start: Stored | None, keywords: Mapping[str, Any]) -> ReadOptions:
    """Return the options to train on a source: defaults, or those of a cache or of the model to continue, updated."""
    cached = cached_options(source)
    if start is None:
        return (cached or ReadOptions()).updated(keywords)
    options = updated_options(start.read_options, {**({} if cached is None else cached.stored), **keywords})
    return options if start.names is None else options.updated({"names": True})


def updated_options(options: ReadOptions, keywords: Mapping[str, Any]) -> ReadOptions:
    """Return a model's options with some changed; the number of bits is fixed.

    >>> updated_options(ReadOptions(bits=18), {"bits": 20})
    Traceback (most recent call last):
    ValueError: bits: got 20, expected 18, as the model was trained with
    """
    if keywords.get("bits") not in (None, options.bits):
        raise ValueError(f"bits: got {keywords['bits']}, expected {options.bits}, as the model was trained with")
    return options.updated(keywords)
