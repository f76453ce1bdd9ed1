"""The header of a model file: its fields, which are all required, and settings and extra content as JSON, and back."""

import dataclasses
import json
from collections.abc import Iterable, Mapping
from typing import Any

from forel.learner.settings import Settings
from forel.losses.margin import MarginLoss
from forel.losses.vocabulary import VOCABULARY, built_in, by_name
from forel.validation import refuse, whole
from forel.version import __version__

__all__ = [
    "VERSION", "ModelFileError", "built_in_loss", "canonical_json", "check_fields", "checked_header", "damaged",
    "header_int", "settings_from_json", "settings_to_json", "user_defined_loss", "validated_extra",
    "validated_settings",
]  # fmt: skip

VERSION = 1
COMMON_FIELDS = (
    "kind", "settings", "features", "dtype", "rounds", "extra", "estimator", "bits", "format", "version", "written_by",
    "check", "checks",
)  # fmt: skip
LEARNER_FIELDS = ("classes", "certified", "weight", "gradient_lanes")
FIELDS = {
    "linear": LEARNER_FIELDS,
    "mixture": (*LEARNER_FIELDS, "share"),
    "keyed": (*LEARNER_FIELDS, "share", "by", "keys", "learner", "parts", "fallback"),
    "serving": ("lanes", "link", "mixed"),
}
SETTINGS_FIELDS = tuple(field.name for field in dataclasses.fields(Settings))


class ModelFileError(ValueError):
    """The file is not a complete model file of a known version."""


def damaged(what: str) -> ModelFileError:
    """Return the error for a file whose content is invalid.

    >>> damaged("the header has invalid values")
    ModelFileError('the header has invalid values; take another copy, or train again')
    """
    return ModelFileError(f"{what}; take another copy, or train again")


def canonical_json(content: Any) -> str:
    """Return JSON text that is the same for equal content."""
    return json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)


def checked_header(header: Mapping[str, Any]) -> dict[str, Any]:
    """Return a header; raise unless it has this version and exactly the fields of its kind.

    >>> checked_header({"version": 2, "written_by": "9.9"})
    Traceback (most recent call last):
    forel.store.header.ModelFileError: a model file of version 2, written by forel 9.9; this is forel ..., which reads
    version 1; update forel
    """
    version, kind = header.get("version"), header.get("kind")
    if type(version) is not int or version < 1:
        raise damaged("the header has no valid version")
    if version > VERSION:
        here = f"this is forel {__version__}, which reads version {VERSION}; update forel"
        raise ModelFileError(f"a model file of version {version}, written by {_writer(header)}; {here}")
    if not isinstance(kind, str) or kind not in FIELDS:
        raise ModelFileError(f"a model of unknown kind {kind!r}; update forel")
    check_fields("a header", header, (*COMMON_FIELDS, *FIELDS[kind]), header)
    return dict(header)


def check_fields(what: str, content: Mapping[str, Any], names: Iterable[str], header: Mapping[str, Any]) -> None:
    """Raise unless some content of a file has exactly these fields."""
    known = set(names)
    for name in sorted(content.keys() - known):
        raise ModelFileError(f"{what} with an unknown field {name!r}; update to {_writer(header)}")
    for name in sorted(known - content.keys()):
        raise damaged(f"{what} without the field {name!r}")


def _writer(header: Mapping[str, Any]) -> str:
    return f"forel {header.get('written_by', 'of unknown version')}"


def header_int(name: str, value: Any, low: int = 0) -> int:
    """Return an integer field of a header; other JSON values, such as 1.0 and true, raise."""
    return whole(name, value, low) if type(value) is int else whole(name, None, low)


def validated_extra(extra: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the extra content of a model; raise if JSON cannot represent it exactly.

    >>> validated_extra({"bits": 18, "labels": ["ham", "spam"]})
    {'bits': 18, 'labels': ['ham', 'spam']}
    >>> validated_extra({"bits": (18, 20)})
    Traceback (most recent call last):
    ValueError: extra: got {'bits': (18, 20)}, expected a dict of JSON content: strings, numbers, lists, dicts
    """
    content = {} if extra is None else extra
    try:
        restored = json.loads(canonical_json(content))
    except (TypeError, ValueError, RecursionError):
        restored = None
    if not isinstance(content, dict) or restored != content:
        raise refuse("extra", content, "a dict of JSON content: strings, numbers, lists, dicts")
    return dict(restored)


def settings_to_json(settings: Settings) -> dict[str, Any]:
    """Return settings as JSON: losses by name and parameters, user-defined functions by name only.

    >>> from forel.losses import Quantile
    >>> settings_to_json(Settings(Quantile(0.9), alpha=[0.1, 1.0]))["loss"]
    {'name': 'quantile', 'parameters': {'q': 0.9}}
    """
    content = {name: getattr(settings, name) for name in SETTINGS_FIELDS}
    loss: Any = settings.loss
    if user_defined_loss(settings) is not None:
        name = getattr(loss, "__qualname__", type(loss).__qualname__)
        content["loss"] = {"own": f"{getattr(loss, '__module__', '')}.{name}"}
    elif not isinstance(loss, str):
        content["loss"] = {"name": loss.name, "parameters": dataclasses.asdict(loss)}
    content["filters"] = [list(one) for one in settings.filters]
    content["full_filters"] = [list(one) for one in settings.full_filters]
    return {name: list(value) if isinstance(value, tuple) else value for name, value in content.items()}


def user_defined_loss(settings: Settings) -> Any:
    """Return the loss if it is user-defined, of which a file holds only the name; None otherwise."""
    loss = settings.loss
    return None if isinstance(loss, str) or built_in(loss) is not None else loss


def built_in_loss(content: Mapping[str, Any]) -> MarginLoss | None:
    """Return the loss of settings as JSON; None if it is user-defined or missing.

    >>> built_in_loss({"loss": {"name": "quantile", "parameters": {"q": 0.9}}})
    Quantile(q=0.9)
    """
    stored = content.get("loss")
    if stored is None or (isinstance(stored, dict) and "own" in stored):
        return None
    if isinstance(stored, dict):
        return by_name(stored["name"], **stored["parameters"])
    if not isinstance(stored, str) or stored not in VOCABULARY:
        raise refuse("loss", stored, "the name of a loss")
    return by_name(stored)


def validated_settings(content: Any, header: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return the settings of a header as JSON; raise for missing and for unknown fields."""
    if not isinstance(content, dict):
        raise damaged("the header has invalid values")
    check_fields("settings", content, SETTINGS_FIELDS, header or {})
    return content


def settings_from_json(
    content: Mapping[str, Any], loss: Any = None, header: Mapping[str, Any] | None = None
) -> Settings:
    """Return the settings of a header.

    A user-defined function is never imported by its name in a file; the caller passes it as ``loss``.
    """
    fields = dict(validated_settings(content, header))
    header_int("seed", fields["seed"])
    if type(fields["bias"]) is not bool:
        raise refuse("bias", fields["bias"], "true or false")
    for name in ("alpha", "beta", "l1", "l2", "radius", "memory"):
        value = fields[name]
        if name == "radius" and value is None:
            continue
        if any(isinstance(v, bool | str) for v in (value if isinstance(value, list) else [value])):
            raise refuse(name, value, "numbers")
    stored, known = fields["loss"], built_in_loss(fields)
    if known is None:
        if loss is None:
            name = stored["own"] if isinstance(stored, dict) else stored
            raise ModelFileError(f"trained with a user-defined loss, {name}; pass this function as loss")
        fields["loss"] = loss
    elif loss is not None:
        raise ModelFileError("trained with a built-in loss; load it without the argument loss")
    elif isinstance(stored, dict):
        fields["loss"] = known
    return Settings(**fields)
