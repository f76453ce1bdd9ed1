"""Domains of labels, and parameters of losses."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from forel.losses import (
    Choice,
    Classes,
    Convex,
    EpsilonInsensitive,
    Example,
    Hinge,
    Huber,
    Interval,
    Linear,
    Poisson,
    Quadratic,
    Quantile,
    Softmax,
)


@pytest.mark.parametrize(
    ("domain", "y", "message"),
    [
        (Interval(), math.nan, "label: got nan, expected a finite number"),
        (Interval(), [0, 1, -math.inf], "label: got -inf at index 2, expected a finite number"),
        (Interval(), "spam", "label: got 'spam', expected a finite number"),
        (Interval(), None, "label: got None, expected a finite number"),
        (Interval(), [[1], [1, 2]], "label: got [[1], [1, 2]], expected a finite number"),
        (Interval(high=2), 3, "label: got 3.0, expected a finite number of at most 2"),
        (Interval(0), [[1, 2], [3, -4]], "label: got -4.0 at index (1, 1), expected a finite number of at least 0"),
        (Interval(0), math.inf, "label: got inf, expected a finite number of at least 0"),
        (Interval(0, 1), -0.5, "label: got -0.5, expected a finite number of at least 0 and at most 1"),
        (Choice((-1, 1)), [1, 0, 2], "label: got 0.0 at index 1, expected -1 or 1"),
        (Choice((-1, 1)), math.nan, "label: got nan, expected -1 or 1"),
        (Classes(3), 3, "label: got 3.0, expected a whole number from 0 to 2"),
        (Classes(3), [0, 0.5], "label: got 0.5 at index 1, expected a whole number from 0 to 2"),
        (Classes(3), -1, "label: got -1.0, expected a whole number from 0 to 2"),
        (Classes(3), math.nan, "label: got nan, expected a whole number from 0 to 2"),
    ],
)
def test_labels_outside_the_domain(domain: Any, y: Any, message: str) -> None:
    with pytest.raises(ValueError, match=r"^label: ") as error:
        domain.check("label", y)
    assert str(error.value) == message


def test_labels_inside_the_domain() -> None:
    for domain, y in ((Interval(), [-1e300, 3]), (Interval(0, 1), [0, 0.5, 1]), (Choice((-1, 1)), [1, -1])):
        assert domain.check("label", y).tolist() == y
        assert domain.check("label", y).dtype == np.float64
    assert Classes(3).check("label", np.uint8(2)) == 2
    assert Interval().check("label", []).shape == (0,)
    with pytest.raises(ValueError, match=r"^label: got 1000+…, expected a finite number$"):
        Interval().check("label", 10**400)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: EpsilonInsensitive(-1), "epsilon: got -1, expected a number of at least 0"),
        (lambda: Huber(0), "delta: got 0, expected a positive number"),
        (lambda: Quantile(1), "q: got 1, expected a number strictly between 0 and 1"),
        (lambda: Quantile(0.0), "q: got 0.0, expected a number strictly between 0 and 1"),
        (lambda: Poisson(cap=600), "cap: got 600, expected a number from 50 to 500"),
        (lambda: Softmax(1), "classes: got 1, expected a whole number of at least 2"),
        (lambda: Interval(2, 1), "low: got 2, expected a number of at most high = 1"),
        (lambda: Linear([1, math.nan]), "g: got nan at index 1, expected finite numbers"),
        (lambda: Quadratic([0.0], curvature=-1), "curvature: got -1, expected a number of at least 0"),
        (lambda: Quadratic([0.0], g=[1, 2]), "center and g: got shapes [(1,), (2,)], expected the same length"),
        (lambda: Example(Hinge(), [1.0], 0), "label: got 0.0, expected -1 or 1"),
        (lambda: Example(Hinge(), [math.inf], 1), "features: got inf at index 0, expected finite numbers"),
        (lambda: Example(Hinge(), [1.0], [1]), "label: got shape (1,), expected one number"),
        (
            lambda: Example(Softmax(), [1.0], 1),
            "loss: got Softmax(classes=None), expected the number of classes, as in Softmax(3)",
        ),
        (lambda: Example(Softmax(3), [1.0], 3), "label: got 3.0, expected a whole number from 0 to 2"),
        (lambda: Convex(1.0, lambda x: x), "value: got 1.0, expected a function of x"),
        (lambda: Convex(sum, lambda x: x, expression=2), "expression: got 2, expected a function of x"),
    ],
)
def test_impossible_parts_are_refused(make: Callable[[], Any], message: str) -> None:
    with pytest.raises(ValueError, match=r".") as error:
        make()
    assert str(error.value) == message
