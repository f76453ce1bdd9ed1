"""Versions of model files: which fields a header has, and how files of older versions are read.

A field that is new and has a default needs no new version: files without it mean the default. What is renamed, comes to
mean something else, or gets another default is a new version, with a step from the one before.
"""

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

__all__ = ["VERSION", "Unreadable", "known_fields", "migrated", "this_forel"]

VERSION = 2
EVERY = (
    "kind", "settings", "features", "dtype", "rounds", "extra", "estimator", "bits", "format", "version", "written_by",
    "check", "checks",
)  # fmt: skip
LEARNER = ("classes", "certified", "weight")
FIELDS = {"trainer": LEARNER, "mixture": (*LEARNER, "share"), "serving": ("lanes", "link", "measured")}
DEFAULTS: dict[str, Any] = {"extra": {}, "estimator": None, "bits": None, "share": None, "measured": None}


class Unreadable(ValueError):
    """A file that is not a whole model of a version that is known here."""


@lru_cache(maxsize=1)
def this_forel() -> str:
    """Return the version of this package, as headers say who wrote them."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("forel")
    except PackageNotFoundError:
        return "of unknown version"


def migrated(header: Mapping[str, Any]) -> dict[str, Any]:
    """Return a header as this version writes it, with defaults for what it does not say.

    >>> migrated({"version": 3, "written_by": "9.9"})
    Traceback (most recent call last):
    forel.store.versions.Unreadable: a model file of version 3, written by forel 9.9; this is forel ..., which reads
    versions up to 2; update forel
    """
    now, version = dict(header), header.get("version")
    if type(version) is not int or version < 1:
        raise Unreadable("the header is not the one that was written; take another copy, or train again")
    if version > VERSION:
        wrote, reads = _wrote(header), f"which reads versions up to {VERSION}; update forel"
        raise Unreadable(
            f"a model file of version {version}, written by {wrote}; this is forel {this_forel()}, {reads}"
        )
    for number in range(version, VERSION):
        now = STEPS[number](now)
    kind = now.get("kind")
    if not isinstance(kind, str) or kind not in FIELDS:
        raise Unreadable(f"a model of the kind {kind!r}, which is not known here; update forel")
    names = (*EVERY, *FIELDS[kind])
    known_fields("a header", now, names, header)
    return {**{name: DEFAULTS[name] for name in names if name in DEFAULTS}, **now}


def known_fields(what: str, content: Mapping[str, Any], names: Any, header: Mapping[str, Any]) -> None:
    """Refuse fields that this version does not know: it could not do what they ask for."""
    unknown = sorted(set(content) - set(names))
    if unknown:
        raise Unreadable(f"{what} with a field {unknown[0]!r} that is not known here; update to {_wrote(header)}")


def _wrote(header: Mapping[str, Any]) -> str:
    return f"forel {header.get('written_by', 'of unknown version')}"


def _first(header: dict[str, Any]) -> dict[str, Any]:
    """Read version 1, whose weights for predicting are those of today, but whose learners have other numbers."""
    if header.get("kind") != "serving":
        remedy = "train again, or convert it with --serving by the forel that wrote it"
        raise Unreadable(f"a learner of version 1, whose state is not that of version {VERSION}; {remedy}")
    return {**header, "version": 2}


STEPS: dict[int, Callable[[dict[str, Any]], dict[str, Any]]] = {1: _first}
