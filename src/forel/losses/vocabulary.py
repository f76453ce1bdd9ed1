"""Losses by name, and the conversion of names, objects and functions to losses."""

import inspect
from numbers import Number
from types import ModuleType
from typing import Any

from forel.losses import classification, regression
from forel.losses.custom import Custom
from forel.losses.margin import MarginLoss
from forel.validation import refuse

__all__ = ["VOCABULARY", "built_in", "by_name", "parse_loss", "resolve", "synonym_hint"]

# Names of losses in other libraries.
SYNONYMS = {
    **dict.fromkeys(("log", "log_loss", "logloss", "cross_entropy", "binary_crossentropy"), "logistic"),
    **dict.fromkeys(("mse", "l2", "squared_loss", "mean_squared_error", "regression"), "squared"),
    **dict.fromkeys(("mae", "l1", "absolute_error", "mean_absolute_error"), "absolute"),
    **dict.fromkeys(("categorical_crossentropy", "multinomial", "multiclass"), "softmax"),
    "pinball": "quantile",
}


def _losses(module: ModuleType) -> list[MarginLoss]:
    """Return the losses that a module exports, in the order of their definition, with default parameters."""
    return [value() for name, value in vars(module).items() if name in module.__all__]


VOCABULARY: dict[str, MarginLoss] = {
    loss.name: loss for module in (classification, regression) for loss in _losses(module)
}
PARAMETERS = {name: loss.parameter_name for name, loss in VOCABULARY.items() if loss.parameter_name}
LOSS_CLASSES = frozenset(type(loss) for loss in VOCABULARY.values())


def by_name(name: str, **parameters: Any) -> MarginLoss:
    """Return a loss by its name in settings and model files.

    Parameters
    ----------
    name : such as "logistic"
    parameters : of the loss, if they differ from the defaults

    >>> by_name("huber"), by_name("quantile", q=0.9)
    (Huber(delta=1.0), Quantile(q=0.9))

    Survey: section 1
    """
    if name not in VOCABULARY:
        raise refuse("loss", name, f"one of {', '.join(VOCABULARY)}{synonym_hint(name)}")
    default = VOCABULARY[name]
    loss_class: Any = type(default)
    loss: MarginLoss = loss_class(**parameters) if parameters else default
    return loss


def synonym_hint(name: Any) -> str:
    """Return the end of a message that names the loss that has another name elsewhere; empty if there is none.

    >>> synonym_hint("log_loss"), synonym_hint("nosuch")
    ('; log_loss is logistic here', '')
    """
    found = SYNONYMS.get(name) if isinstance(name, str) else None
    return "" if found is None else f"; {name} is {found} here"


def parse_loss(text: str) -> str | MarginLoss:
    """Return a loss that a command names: the name itself, or the loss if its parameter follows after a colon.

    >>> parse_loss("logistic"), parse_loss("quantile:0.9")
    ('logistic', Quantile(q=0.9))
    >>> parse_loss("logistic:0.9")
    Traceback (most recent call last):
    ValueError: loss: got 'logistic:0.9', expected a number after one of epsilon_insensitive, huber, quantile, poisson
    """
    name, colon, value = text.partition(":")
    if not colon:
        return text
    try:
        parameters = {PARAMETERS[name]: float(value)}
    except (KeyError, ValueError):
        raise refuse("loss", text, f"a number after one of {', '.join(PARAMETERS)}") from None
    return by_name(name, **parameters)


def built_in(loss: Any) -> MarginLoss | None:
    """Return a built-in loss, given as an object or by name; None for anything else.

    >>> built_in("logistic"), built_in(max)
    (Logistic(), None)
    """
    if isinstance(loss, str):
        return VOCABULARY.get(loss)
    return loss if type(loss) in LOSS_CLASSES else None


def resolve(loss: Any) -> MarginLoss:
    """Return a loss given as a name, an object, or a function of margin and label that returns value and slope.

    >>> resolve("logistic")
    Logistic()
    """
    if isinstance(loss, str):
        return by_name(loss)
    known = built_in(loss)
    if known is not None:
        return known
    try:
        inspect.signature(loss).bind(0.0, 1.0)
    except (TypeError, ValueError):
        expected = f"one of {', '.join(VOCABULARY)}, a loss, or a function of margin and label"
        raise refuse("loss", loss, expected) from None
    try:
        found: Any = Custom(loss).function(0.0, 1.0)
    except (ArithmeticError, ValueError):  # outside its domain
        return Custom(loss)
    except Exception as error:
        raise refuse("loss", f"{type(error).__name__}: {error}", "a function that returns value and slope") from error
    if not (isinstance(found, tuple) and len(found) == 2 and all(isinstance(one, Number) for one in found)):
        raise refuse("loss", found, "a function of margin and label that returns value and slope, two numbers")
    return Custom(loss)
