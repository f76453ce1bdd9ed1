"""Margins of a few rows at a time, as a server needs them: kernels are prepared once, arrays are kept."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from forel.learner.learner import Learner
from forel.learner.rows import Rows
from forel.losses.margin import Mixing

__all__ = ["LeanMargins"]


class LeanMargins:
    """Predicts with a learner's live state, with the same bits as :meth:`forel.learner.learner.Learner.margins`.

    Prepared for one setting, and for mixtures by Bayes' rule without full-covariance filters; others take the way of
    ``Learner.margins``. For one thread, on which the learner learns, too.

    >>> from forel.learner.rows import CoalescedRows
    >>> from forel.learner.settings import Settings
    >>> model = Learner(4, Settings(alpha=1.0))
    >>> rows = CoalescedRows(np.array([0, 1]), np.int32([3]), np.float32([2.0]))
    >>> _ = model.learn(rows, [1])
    >>> bool((LeanMargins(model)(rows) == model.margins(rows)).all())
    True
    """

    def __init__(self, learner: Learner) -> None:
        self.learner = learner
        self._ledger: Any = None
        self._state: Any = None
        self._size = 0

    def __call__(self, rows: Rows) -> NDArray[Any]:
        """Return the margins of validated rows, a column for each output; the array is used again by the next call."""
        learner, state = self.learner, self.learner.state
        mixture, count = learner.mixture, rows.indptr.size - 1
        if self._state is not state or (mixture is not None and self._ledger is not mixture.ledger):
            self._prepare()
        if not self._lean:
            return learner.margins(rows)
        if count > self._size:
            self._grow(max(count, 2 * self._size))
        width = state.n_lanes
        out = self._out[: count * width]
        if count:
            self._score(*rows, state.records, self._scales, state.last_round, state.rounds, *self._constants, out)
        if mixture is None:
            return out.reshape(count, width)
        flat, zeros, minus, final = out, self._zeros[:count], self._minus[:count], self._final[:count]
        if self._mixers is not None:
            inputs, mixed, every = (
                out.reshape(count, width).astype(np.float64),
                self._mixed[:count],
                self._every[:count],
            )
            self._mix(inputs, zeros, minus, self._mixers.parameters, self._mixers.states, mixed)
            every[:, :width], every[:, width:] = inputs, mixed
            flat, width = every.ravel(), every.shape[1]
        self._bayes(flat, width, zeros, minus, self._ledger.array, final[:, 0])
        return final

    def _prepare(self) -> None:
        """Prepare kernels for the experts that the learner has now."""
        from forel.learner.kernels import kernel

        learner, state = self.learner, self.learner.state
        mixture, self._state = learner.mixture, state
        self._lean = type(learner) is Learner and (
            mixture is None
            or (mixture.rule is Mixing.BAYES and mixture.classes is None and mixture.share is None
                and all(group is mixture.mixers for group in mixture.groups))
        )  # fmt: skip
        self._ledger = None if mixture is None else mixture.ledger
        if not self._lean:
            return
        _, self._scales, _, _, *shared = state.arrays
        self._constants = *shared, state.totals, False
        self._mixers = None if mixture is None else mixture.mixers
        self._grow(max(self._size, 64))
        row = np.array([0, 0]), np.zeros(0, np.int32), np.zeros(0, state.dtype)
        arguments = (*row, state.records, self._scales, state.last_round, state.rounds, *self._constants)
        self._score = _prepared(state.kernel.score, *arguments, self._out[: state.n_lanes])
        if mixture is None:
            return
        one, held_out = self._zeros[:1], self._minus[:1]
        if self._mixers is not None:
            mixers = self._mixers
            inputs, out = np.zeros((1, state.n_lanes)), self._mixed[:1]
            arguments = (inputs, one, held_out, mixers.parameters, mixers.states, out)
            self._mix = _prepared(kernel.routine("geometric", "mix"), *arguments)
        flat = self._out[: state.n_lanes] if self._mixers is None else self._every[:1].ravel()
        arguments = (flat, flat.size, one, held_out, mixture.ledger.array, self._final[:1][:, 0])
        self._bayes = _prepared(kernel.routine("bayes", "bayes"), *arguments)

    def _grow(self, rows: int) -> None:
        state, mixers = self.learner.state, 0 if self._mixers is None else len(self._mixers.mixers)
        self._size, self._out = rows, np.zeros(rows * state.n_lanes, state.dtype)
        self._zeros, self._minus, self._final = np.zeros(rows), np.full(rows, -1.0), np.zeros((rows, 1))
        self._mixed, self._every = np.zeros((rows, mixers)), np.zeros((rows, state.n_lanes + mixers))


def _prepared(function: Any, *arguments: Any) -> Any:
    """Return the code for these arguments; a plain function where nothing is compiled."""
    prepare = getattr(function, "prepared", None)
    return function if prepare is None else prepare(*arguments)
