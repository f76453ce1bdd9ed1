"""Settings as JSON and back: what a header says about how a model learns."""

import dataclasses
import json
from collections.abc import Mapping
from typing import Any

from forel.learner.settings import Settings
from forel.losses.vocabulary import VOCABULARY, built_in, by_name
from forel.store.files import Unreadable, text_of
from forel.store.versions import known_fields
from forel.validation import refuse, whole

__all__ = ["checked_settings", "count_of", "extra_of", "pack_settings", "unpack_settings", "user_defined_loss"]


def count_of(name: str, value: Any, low: int = 0) -> int:
    """Return a whole number of a header, which has to be one in JSON, too."""
    return whole(name, value, low) if type(value) is int else whole(name, None, low)


def extra_of(extra: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return what a caller wants to keep with a model, or refuse what would come back as something else.

    >>> extra_of({"bits": 18, "labels": ["ham", "spam"]})
    {'bits': 18, 'labels': ['ham', 'spam']}
    >>> extra_of({"bits": (18, 20)})
    Traceback (most recent call last):
    ValueError: extra: got {'bits': (18, 20)}, expected a dict of names to what JSON holds: text, numbers, lists, dicts
    """
    given = {} if extra is None else extra
    try:
        held = json.loads(text_of(given))
    except (TypeError, ValueError, RecursionError):
        held = None
    if not isinstance(given, dict) or held != given:
        raise refuse("extra", given, "a dict of names to what JSON holds: text, numbers, lists, dicts")
    return dict(held)


def pack_settings(settings: Settings) -> dict[str, Any]:
    """Return settings as JSON: losses by name and parameters, a function of the user's own by its name only.

    >>> from forel.losses import Quantile
    >>> pack_settings(Settings(Quantile(0.9), alpha=[0.1, 1.0]))["loss"]
    {'name': 'quantile', 'parameters': {'q': 0.9}}
    """
    content = {field.name: getattr(settings, field.name) for field in dataclasses.fields(Settings)}
    loss: Any = settings.loss
    if not isinstance(loss, str) and built_in(loss) is not None:
        content["loss"] = {"name": loss.name, "parameters": dataclasses.asdict(loss)}
    elif not isinstance(loss, str):
        name = getattr(loss, "__qualname__", type(loss).__qualname__)
        content["loss"] = {"own": f"{getattr(loss, '__module__', '')}.{name}"}
    return {name: list(value) if isinstance(value, tuple) else value for name, value in content.items()}


def user_defined_loss(settings: Settings) -> Any:
    """Return the loss if it is user-defined, so that a file holds only its name; None otherwise."""
    loss = pack_settings(settings)["loss"]
    return settings.loss if isinstance(loss, dict) and "own" in loss else None


def checked_settings(content: Any, header: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return the settings of a header, or refuse fields that are not known here."""
    if not isinstance(content, dict):
        raise Unreadable("the header says what no model says; take another copy, or train again")
    known_fields("settings", content, [field.name for field in dataclasses.fields(Settings)], header or {})
    return content


def unpack_settings(content: Mapping[str, Any], loss: Any = None, header: Mapping[str, Any] | None = None) -> Settings:
    """Return the settings that a header tells of.

    A function is never looked up by the name in a file, because that would let a file choose what is imported; the
    caller gives it as ``loss``.
    """
    fields = {
        **pack_settings(Settings()),
        **checked_settings(content, header),
    }  # a file from before a field has its default
    count_of("seed", fields["seed"])
    if type(fields["bias"]) is not bool:
        raise refuse("bias", fields["bias"], "true or false")
    for name in ("alpha", "beta", "l1", "l2", "radius"):
        value = fields[name]
        if name == "radius" and value is None:
            continue
        if any(isinstance(v, bool | str) for v in (value if isinstance(value, list) else [value])):
            raise refuse(name, value, "numbers")
    stored = fields["loss"]
    if isinstance(stored, dict) and "own" in stored:
        if loss is None:
            raise Unreadable(f"learned with a loss of your own, {stored['own']}; load it with loss=that function")
        fields["loss"] = loss
    elif loss is not None:
        raise Unreadable("learned with a loss that forel knows; load it without loss")
    elif isinstance(stored, dict):
        fields["loss"] = by_name(stored["name"], **stored["parameters"])
    elif not isinstance(stored, str) or stored not in VOCABULARY:
        raise refuse("loss", stored, "the name of a loss")
    return Settings(**fields)
