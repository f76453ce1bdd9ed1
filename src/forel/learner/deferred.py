"""Learning in two parts, so that a mixture's linear models learn the next rows while the last ones are mixed."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from forel.learner.protocol import Learner
from forel.learner.rows import training_rows
from forel.learner.targets import labels_and_scale

__all__ = ["start_progress"]


def start_progress(
    learner: Learner,
    X: Any,
    y: ArrayLike,
    importance: ArrayLike | None = None,
    held_out: NDArray[np.bool_] | None = None,
    again: bool = False,
) -> Callable[[], NDArray[Any]]:
    """Let the linear models of a learner learn rows; return a function that lets its other experts learn them.

    The function returns margins as :meth:`Learner.progress` does, or :meth:`Learner.relearn` if ``again``. Functions of
    several calls have to be called in their order, on any thread; the learner is complete after the last one. The
    other experts of a mixture learn from the margins of its linear models, which do not depend on them.

    >>> from forel.learner.mixture import Mixture, Settings
    >>> model = Mixture(1, Settings(alpha=(0.1, 1.0)))
    >>> finish = start_progress(model, np.ones((2, 1)), [1, 1])
    >>> model.rounds, model.first_pass_rows
    (2, 0)
    >>> finish().ravel().round(2), model.first_pass_rows
    (array([0.  , 0.36]), 2)
    """
    pool, rows = learner.pool, training_rows(X, learner.features, learner.dtype)
    margins = learner.linear.progress(rows, y, importance, held_out)
    if pool is None:
        return lambda: margins
    mix = pool.relearn if again else pool.mix

    def finish() -> NDArray[Any]:
        with learner._guard.changing():
            return mix(rows, margins, *labels_and_scale(y, importance, held_out))

    return finish
