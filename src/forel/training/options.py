"""Read options of a run: those of the stored model, and of the caller."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from forel.data import ReadOptions
from forel.data.labels import validated_classes
from forel.validation import refuse

if TYPE_CHECKING:
    from forel.training.model import Model

__all__ = ["model_options", "options_for", "updated_options"]


def options_for(start: "Model | None", options: ReadOptions | None, keywords: Mapping[str, Any]) -> ReadOptions:
    """Return the options to train with: those given, or of the model to continue, updated."""
    if options is not None and start is not None:
        raise refuse("options", "read options", "none with a model, which has its own; give those that differ by name")
    if start is None:
        return (options or ReadOptions()).updated(keywords)
    found = updated_options(model_options(start), keywords)
    return found if start.names is None else found.updated({"names": True})


def model_options(stored: "Model") -> ReadOptions:
    """Return the options to read data for a model with, including the names of its classes, if it has several."""
    names = stored.classes
    return stored.read_options if names is None else stored.read_options.updated({"classes": names})


def updated_options(options: ReadOptions, keywords: Mapping[str, Any]) -> ReadOptions:
    """Return a model's options with some changed; the number of bits and the classes are fixed.

    >>> updated_options(ReadOptions(bits=18), {"bits": 20})
    Traceback (most recent call last):
    ValueError: bits: got 20, expected 18, as the model was trained with
    """
    if keywords.get("bits") not in (None, options.bits):
        raise ValueError(f"bits: got {keywords['bits']}, expected {options.bits}, as the model was trained with")
    given = validated_classes(keywords.get("classes"))
    names = options.classes
    if isinstance(names, tuple) and given not in (None, "auto", len(names), names):
        raise ValueError(f"classes: got {given}, expected {names}, as the model was trained with")
    return options.updated({**keywords, "classes": names or given})
