"""The curves of a run: from the first rows of its source, before any of them is learned from."""

from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from itertools import chain
from typing import Any, Literal, get_args

import numpy as np

from forel.data import Block, slot
from forel.data.features.curves import FEWEST, FIRST, Curves
from forel.learner.class_experts import MOST
from forel.learner.learner import Learner
from forel.learner.rows import CoalescedRows, Rows
from forel.learner.settings import Settings
from forel.losses.margin import Mixing
from forel.training.holdout import Holdout
from forel.training.passes import Passes
from forel.validation import refuse

__all__ = ["DEFAULT", "Features", "checked_features", "curves_of_rows", "curves_of_source"]

Features = Literal["auto", "linear", "curves", "pairs"]
DEFAULT: Features = "auto"
LONGEST = 300  # features of a row, on average, beyond which there are no curves by default


def checked_features(given: Any) -> Features:
    """Return a choice of features, or raise with a suggestion.

    >>> checked_features("curve")
    Traceback (most recent call last):
    ValueError: features: got 'curve', expected one of auto, linear, curves, pairs; did you mean 'curves'?
    """
    known = get_args(Features)
    if given in known:
        found: Features = given
        return found
    close = get_close_matches(str(given), known, 1)
    hint = f"; did you mean {close[0]!r}?" if close else ""
    raise refuse("features", given, f"one of {', '.join(known)}{hint}")


def curves_of_rows(
    features: Features, rows: Rows, columns: Iterable[int], settings: Settings, classes: int | None, zeros: bool = False
) -> Curves | None:
    """Return the curves of the first rows for experts of a mixture; None if there are none.

    Parameters
    ----------
    features : "linear" for none, "curves" for those without pairs, "pairs" for both; "auto" for both if there are
        columns of numbers, enough rows, and the experts by default
    rows : the first rows
    columns : slots of columns of numbers
    settings : of the mixture
    classes : the number of several classes
    zeros : whether columns without an entry in a row are 0
    """
    auto = features == "auto"
    if features == "linear":
        return None
    several = classes is not None and (classes > MOST or settings.loss_function.mixing is not Mixing.BAYES)
    if several or not settings.filters:
        if auto:
            return None
        expected = f"'linear' or 'auto' for other losses or settings than the default ones, or more than {MOST} classes"
        raise refuse("features", features, expected)
    if auto and (rows.number < FEWEST or rows.indices.size > LONGEST * rows.number):
        return None
    found = Curves.of(rows, list(columns), features != "curves", zeros)
    if found is None and not auto:
        raise refuse("features", features, "'linear' or 'auto' for rows without columns of numbers, or with too many")
    return found


def curves_of_source(
    features: Features,
    passes: Passes,
    blocks: Iterator[Block],
    rule: Holdout | None,
    settings: Settings,
    count: int | None,
    start: Learner | None,
) -> tuple[Curves | None, Iterator[Block]]:
    """Return the curves of a run, and all its blocks, of which the first are read: no row is lost.

    Parameters
    ----------
    features : as in :func:`curves_of_rows`
    passes : the source, which has the kinds of columns
    blocks : of the first pass
    rule : rows that are held out, of which knots know nothing, as of those of importance 0; None for none
    settings, count : of the model, and the number of its classes
    start : the model to continue from, whose curves are used
    """
    if start is not None:
        if features != "auto" and (features == "linear") != (start.curves is None):
            raise refuse("features", features, "'auto': training continues with the model's features")
        return start.curves, blocks
    if features == "linear" or (features == "auto" and not settings.filters):
        return None, blocks
    first, total = list[Block](), 0
    while total < FIRST and (block := next(blocks, None)) is not None:
        first.append(block)
        total += len(block)
        if not passes.kinds.known:
            break
    everything = chain(first, blocks)
    columns = list(dict.fromkeys((*passes.options.log, *passes.kinds.numeric)))
    if features == "auto" and (not columns or passes.options.transform is not None):
        return None, everything
    parts, left = [], FIRST
    for block in first:
        assert block.numbers is not None
        size = min(left, len(block))
        left -= size
        kept = np.flatnonzero(block.importance[:size] > 0)
        if rule is not None and (held := rule.mask(block.numbers[kept])) is not None:
            kept = kept[~held]
        parts.append(CoalescedRows(*block.rows).take(kept))
    rows = joined(parts)
    slots = [slot(name, bits=passes.options.bits) for name in columns]
    return curves_of_rows(features, rows, slots, settings, count), everything


def joined(parts: list[Rows]) -> Rows:
    """Return rows one after the other.

    >>> one = Rows(np.array([0, 2]), np.array([3, 4]), np.array([1.0, 2.0]))
    >>> joined([one, one]).indptr
    array([0, 2, 4])
    """
    sizes = np.concatenate([np.zeros(1, np.int64), *(np.diff(one.indptr) for one in parts)])
    indices, values = (np.concatenate([one[k] for one in parts] or [np.zeros(0)]) for k in (1, 2))
    return Rows(np.cumsum(sizes), indices, values)
