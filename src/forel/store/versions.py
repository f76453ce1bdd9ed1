"""Versions of model files: the fields of a header, and migrations from older versions.

A new field with a default needs no new version: files without the field have the default. A field that is renamed,
changes its meaning or gets another default needs a new version, and a migration from the previous one.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from forel.version import __version__

__all__ = ["VERSION", "ModelFileError", "check_fields", "damaged", "migrate"]

VERSION = 4
COMMON_FIELDS = (
    "kind", "settings", "features", "dtype", "rounds", "extra", "estimator", "bits", "format", "version", "written_by",
    "check", "checks",
)  # fmt: skip
LEARNER_FIELDS = ("classes", "certified", "weight", "fine_units", "adaptive_rate", "gradient_lanes")
FIELDS = {
    "trainer": LEARNER_FIELDS,
    "mixture": (*LEARNER_FIELDS, "share"),
    "keyed": (*LEARNER_FIELDS, "share", "by", "keys", "learner", "parts", "fallback"),
    "serving": ("lanes", "link", "measured", "mixed"),
}
DEFAULTS: dict[str, Any] = {
    "extra": {}, "estimator": None, "bits": None, "share": None, "measured": None, "mixed": None,
    "fine_units": False, "adaptive_rate": False, "gradient_lanes": None,
}  # fmt: skip


class ModelFileError(ValueError):
    """The file is not a complete model file of a known version."""


def damaged(what: str) -> ModelFileError:
    """Return the error for a file whose content is invalid.

    >>> damaged("the header has invalid values")
    ModelFileError('the header has invalid values; take another copy, or train again')
    """
    return ModelFileError(f"{what}; take another copy, or train again")


def migrate(header: Mapping[str, Any]) -> dict[str, Any]:
    """Return a header of any version as one of the current version, with defaults for missing fields.

    >>> migrate({"version": 5, "written_by": "9.9"})
    Traceback (most recent call last):
    forel.store.versions.ModelFileError: a model file of version 5, written by forel 9.9; this is forel ..., which reads
    versions up to 4; update forel
    """
    current, version = dict(header), header.get("version")
    if type(version) is not int or version < 1:
        raise damaged("the header has no valid version")
    if version > VERSION:
        here = f"this is forel {__version__}, which reads versions up to {VERSION}; update forel"
        raise ModelFileError(f"a model file of version {version}, written by {_writer(header)}; {here}")
    for number in range(version, VERSION):
        current = MIGRATIONS[number](current)
    kind = current.get("kind")
    if not isinstance(kind, str) or kind not in FIELDS:
        raise ModelFileError(f"a model of unknown kind {kind!r}; update forel")
    names = (*COMMON_FIELDS, *FIELDS[kind])
    check_fields("a header", current, names, header)
    return {**{name: DEFAULTS[name] for name in names if name in DEFAULTS}, **current}


def check_fields(what: str, content: Mapping[str, Any], names: Iterable[str], header: Mapping[str, Any]) -> None:
    """Raise for fields that this version does not support."""
    unknown = sorted(set(content) - set(names))
    if unknown:
        raise ModelFileError(f"{what} with an unknown field {unknown[0]!r}; update to {_writer(header)}")


def _writer(header: Mapping[str, Any]) -> str:
    return f"forel {header.get('written_by', 'of unknown version')}"


def _from_version_1(header: dict[str, Any]) -> dict[str, Any]:
    """Migrate a serving model, which did not change in version 2; the state of learners did."""
    if header.get("kind") != "serving":
        remedy = "train again, or convert it with --serving and the version of forel that wrote it"
        raise ModelFileError(f"a learner of version 1, whose state differs from that of version {VERSION}; {remedy}")
    return {**header, "version": 2}


def _from_version_2(header: dict[str, Any]) -> dict[str, Any]:
    """Migrate a header of version 2: learners with scale-free rates had other units."""
    units = {} if header.get("kind") == "serving" else {"fine_units": True}
    return {**header, **units, "version": 3}


def _from_version_3(header: dict[str, Any]) -> dict[str, Any]:
    """Migrate a header of version 3: fields of checkpoints and estimators had other names."""
    migrated = {**header, "version": 4}
    extra, estimator = header.get("extra"), header.get("estimator")
    if isinstance(extra, dict) and isinstance(extra.get("checkpoint"), dict):
        renamed = {CHECKPOINT_FIELDS_3.get(name, name): value for name, value in extra["checkpoint"].items()}
        migrated["extra"] = {**extra, "checkpoint": renamed}
    if isinstance(estimator, dict):
        migrated["estimator"] = {"unset" if name == "unsaid" else name: value for name, value in estimator.items()}
    return migrated


CHECKPOINT_FIELDS_3 = {
    "told": "fingerprint", "turn": "pass_number", "first": "first_pass", "negative": "negative_label",
}  # fmt: skip
MIGRATIONS: dict[int, Callable[[dict[str, Any]], dict[str, Any]]] = {
    1: _from_version_1,
    2: _from_version_2,
    3: _from_version_3,
}
