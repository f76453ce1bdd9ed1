"""The header of a model file: its fields, which are all required, and settings and extra content as JSON, and back."""

import dataclasses
import json
from collections.abc import Mapping
from typing import Any

from forel.learner.settings import Settings
from forel.losses.margin import MarginLoss
from forel.losses.vocabulary import built_in, by_name
from forel.validation import refuse
from forel.version import __version__

__all__ = [
    "VERSION", "ModelFileError", "built_in_loss", "canonical_json", "checked_header", "damaged", "settings_from_json",
    "settings_to_json", "user_defined_loss", "validated_extra",
]  # fmt: skip

VERSION = 1
MANY = 1 << 62
# The types of fields, which are all required; of whole numbers also their range.
COMMON_FIELDS = {
    "kind": str, "settings": dict, "features": range(1, MANY), "dtype": str, "rounds": range(MANY), "extra": dict,
    "estimator": (dict, None), "bits": (range(1, 32), None), "format": str, "version": int, "written_by": str,
    "check": int,
}  # fmt: skip
LEARNER_FIELDS = {
    "classes": (range(2, MANY), None), "certified": bool, "weight": (int, float), "gradient_lanes": list,
}  # fmt: skip
SHARE = {"share": (float, int, None)}
KEYED_FIELDS = {"by": str, "keys": list, "learner": str, "counts": list, "fallback": bool}
FIELDS: dict[str, dict[str, Any]] = {
    "linear": LEARNER_FIELDS,
    "mixture": LEARNER_FIELDS | SHARE,
    "keyed": LEARNER_FIELDS | SHARE | KEYED_FIELDS,
    "serving": {"lanes": range(1, MANY), "link": str, "mixed": (list, None)},
}
SETTINGS_FIELDS = {field.name: object for field in dataclasses.fields(Settings)} | {"bias": bool}


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
    _check_fields("a header", header, COMMON_FIELDS | FIELDS[kind], header)
    _check_fields("settings", header["settings"], SETTINGS_FIELDS, header)
    return dict(header)


def _check_fields(what: str, content: Mapping[str, Any], fields: Mapping[str, Any], header: Mapping[str, Any]) -> None:
    """Raise unless some content of a file has exactly these fields, with values of their types."""
    writer = _writer(header)
    for name in sorted(content.keys() - fields.keys()):
        raise ModelFileError(f"{what} with an unknown field {name!r}; update to {writer}")
    for name in sorted(fields.keys() - content.keys()):
        raise damaged(f"{what} without the field {name!r}")
    for name, allowed in fields.items():
        if not any(_is_of(content[name], one) for one in (allowed if isinstance(allowed, tuple) else (allowed,))):
            raise damaged(f"{what} with an invalid {name!r}")


def _is_of(value: Any, allowed: Any) -> bool:
    """Return whether a value of JSON has a type, is a whole number in a range, or is None."""
    if isinstance(allowed, range):
        return type(value) is int and value in allowed
    return value is None if allowed is None else allowed in (object, type(value))


def _writer(header: Mapping[str, Any]) -> str:
    return f"forel {header.get('written_by', 'of unknown version')}"


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
    if isinstance(stored, dict):
        return None if "own" in stored else by_name(stored["name"], **stored["parameters"])
    return None if stored is None else by_name(stored)


def settings_from_json(content: Mapping[str, Any], loss: Any = None) -> Settings:
    """Return the settings of a header.

    A user-defined function is never imported by its name in a file; the caller passes it as ``loss``.
    """
    stored, known = content["loss"], built_in_loss(content)
    if known is None and loss is None:
        name = stored["own"] if isinstance(stored, dict) else stored
        raise ModelFileError(f"trained with a user-defined loss, {name}; pass this function as loss")
    if known is not None and loss is not None:
        raise ModelFileError("trained with a built-in loss; load it without the argument loss")
    used = stored if isinstance(stored, str) else known or loss
    settings = Settings(**{**content, "loss": used})
    if canonical_json({**settings_to_json(settings), "loss": stored}) != canonical_json(content):
        raise damaged("the settings have invalid values")  # such as true in place of a number
    return settings
