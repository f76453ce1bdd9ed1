"""What commands print without tables: messages, signed numbers and JSON."""

import json
import math
import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from forel.learner.learner import Learner
    from forel.training.metrics import Report
    from forel.training.statements import Statements

__all__ = [
    "jsonable",
    "mixture_summary",
    "print_json",
    "print_statements",
    "say",
    "say_where_terms_are",
    "signed",
]


def say(text: str, err: bool = True) -> None:
    """Print a message, on stderr by default, with a replacement for terminal escapes and marks of direction."""
    from forel.markup import clean

    typer.echo(clean(text), err=err)


def say_where_terms_are(stderr: bool = False) -> None:
    """Name the page that explains what was printed."""
    say("What do these mean? docs/guide/glossary.md", stderr)


def print_json(value: Any, stderr: bool = False) -> None:
    """Print a value as one line of JSON; numbers that are not finite are null."""
    print(json.dumps(_finite(value), allow_nan=False), file=sys.stderr if stderr else sys.stdout)


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(each) for each in value]
    value = value.item() if hasattr(value, "item") else value  # a number of numpy
    return None if isinstance(value, float) and not math.isfinite(value) else value


def print_statements(found: "Statements | None", stderr: bool = False) -> None:
    """Print a line for the coverage of intervals, and one for alarms, if there are any."""
    for sentence in () if found is None else found.sentences():
        say(f"{sentence[:1].upper()}{sentence[1:]}.", stderr)


def signed(number: float) -> str:
    """Return a number with its sign and five decimals; zero has no sign.

    >>> signed(0.25), signed(-0.25), signed(-1e-9)
    ('+0.25000', '-0.25000', '0.00000')
    """
    text = f"{number:+.5f}"
    return text[1:] if not text.strip("+-0.") else text


def mixture_summary(model: "Learner") -> dict[str, Any] | None:
    """Return the guarantee, the experts, the best first, and the kinds of a mixture as JSON; None for one model."""
    found = model.explain()
    if found is None:
        return None
    settings = [
        {"setting": s.name, "kind": s.kind, "loss": s.loss, "behind": s.behind, "posterior": s.weight}
        for s in sorted(found.experts, key=lambda one: one.loss)
    ]
    kinds = {"kinds": [asdict(one) for one in found.kinds], "exact": found.exact}
    return {"guarantee": found.guarantee, "settings": settings, **kinds}


def jsonable(report: "Report | None") -> Any:
    """Return a report as a JSON value."""
    return None if report is None else report.to_json()
