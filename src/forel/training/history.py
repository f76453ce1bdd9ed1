"""Learning curves: a few values at exponentially spaced rows, so that memory stays small."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from forel.theory.norms import L2, LINF
from forel.training.progress import Progress

__all__ = ["Curve", "History", "Probe", "certificate_values", "mixture_weights"]

Probe = Callable[[Progress], Mapping[str, float]]
LOSS_SPACING = 2**0.25  # ratio of rows between two points of a loss curve
SAMPLE = 1000  # rows whose residuals are shown
PROBE_SPACING = 2.0  # likewise for probes, some of which read the whole model


@dataclass(frozen=True)
class Curve:
    """Values by number of rows.

    >>> curve = Curve()
    >>> for rows, value in [(10, 0.5), (10, 0.5), (20, float("nan")), (40, 0.25)]:
    ...     curve.add(rows, value)
    >>> curve.rows, curve.values
    ([10, 40], [0.5, 0.25])
    """

    rows: list[int] = field(default_factory=list)
    values: list[float] = field(default_factory=list)

    def add(self, rows: int, value: float) -> None:
        """Append a point, unless it is not finite or not after the last one."""
        if math.isfinite(value) and (not self.rows or rows > self.rows[-1]):
            self.rows.append(rows)
            self.values.append(value)


class History:
    """Learning curves by group and name: a ``progress`` callback of ``train``, to be closed afterwards.

    The group "loss" is about the rows learned from in the first pass: the "average", the average "since" the previous
    point, and the average of the rows "held out". Each probe is another group, by all rows the model has learned from.

    Parameters
    ----------
    probes : functions by group, which map a :class:`forel.training.progress.Progress` to values by name

    >>> from forel.training.train import train
    >>> clicks = [{"site": "news", "click": 1}, {"site": "shop", "click": 0}] * 50
    >>> history = History(bias=lambda progress: {"weight": float(progress.model.bias[0])})
    >>> _ = train(clicks, label="click", bits=10, block_bytes=1000, progress=history)
    >>> history.close()
    >>> history.curves["loss"]["average"].rows[-1], history.curves["bias"]["weight"].rows[-1]
    (100, 100)
    """

    def __init__(self, **probes: Probe) -> None:
        self.curves: dict[str, dict[str, Curve]] = {"loss": {}, **{group: {} for group in probes}}
        self._probes = probes
        self._last: Progress | None = None
        self._next_loss = self._next_probe = 0.0  # rows at which the next point is due
        self._before = 0.0, 0.0  # weight and sum of losses at the previous point
        # Labels and predictions of every ``_stride``-th row of the first pass: at most SAMPLE of them.
        self.sample: list[tuple[float, float]] = []
        self._stride, self._seen = 1, 0

    @property
    def reads_model(self) -> bool:
        """Whether there are probes, which may read the model."""
        return bool(self._probes)

    def __call__(self, progress: Progress) -> None:
        """Add points to the curves that are due."""
        before, self._last = self._last, progress
        if before is not None and before.pass_number == 1 < progress.pass_number:
            self._add_losses(before)
        if progress.pass_number == 1:
            self._add_sample(progress)
        if progress.pass_number == 1 and progress.rows >= self._next_loss:
            self._next_loss = LOSS_SPACING * progress.rows
            self._add_losses(progress)
        if self._probes and progress.model.rounds >= self._next_probe:
            self._next_probe = PROBE_SPACING * progress.model.rounds
            self._add_probes(progress)

    def close(self) -> None:
        """Add the end of training to every curve."""
        if self._last is not None:
            if self._last.pass_number == 1:
                self._add_losses(self._last)
            self._add_probes(self._last)
            self._last = None

    def _add_sample(self, progress: Progress) -> None:
        """Keep evenly spaced rows, whatever the blocks."""
        labels, margins = progress.block.labels, progress.margins
        if margins.ndim > 1:
            return
        first = -self._seen % self._stride
        predictions = progress.model.settings.link(margins[first :: self._stride])
        pairs = zip(labels[first :: self._stride].tolist(), np.asarray(predictions).tolist(), strict=True)
        self.sample += pairs
        self._seen += labels.size
        while len(self.sample) > SAMPLE:
            self.sample, self._stride = self.sample[::2], 2 * self._stride

    def _add_losses(self, progress: Progress) -> None:
        total, holdout = progress.progressive.total, progress.holdout.total
        if not total.weight:
            return
        weight, loss = self._before
        self._before = total.weight, total.loss
        since = (total.loss - loss) / (total.weight - weight) if total.weight > weight else math.nan
        self._add("loss", total.rows, {"average": total.mean, "since": since})
        if holdout.rows:
            self._add("loss", total.rows, {"held out": holdout.mean})

    def _add_probes(self, progress: Progress) -> None:
        for group, probe in self._probes.items():
            self._add(group, progress.model.rounds, probe(progress))

    def _add(self, group: str, rows: int, values: Mapping[str, float]) -> None:
        for name, value in values.items():
            self.curves[group].setdefault(name, Curve()).add(rows, value)


def mixture_weights(progress: Progress) -> dict[str, float]:
    """Probe: the weight of each setting of a mixture; empty for one model.

    >>> from forel.training.train import Settings, train
    >>> rows = [{"x": 1.0, "y": k % 3 == 0} for k in range(300)]
    >>> history = History(weights=mixture_weights)
    >>> _ = train(rows, Settings(alpha=(0.1, 1.0)), label="y", bits=4, progress=history)
    >>> history.close()
    >>> sorted(history.curves["weights"])
    ['alpha=0.1', 'alpha=1']

    Survey: section 3.6
    """
    found = progress.model.explain()
    return {} if found is None else {one.name: one.weight for one in found.experts}


def certificate_values(progress: Progress) -> dict[str, float]:
    r"""Probe: the statements of the certificate of a certified model, per unit of weight.

    "regret" is the largest regret against a fixed model of at most the learned model's norm, "bound" the theorem's
    bound against that model (unless it is void), "loss" the learner's loss, and "floor" a lower bound on the loss of
    any such model.

    >>> import numpy as np
    >>> from forel.training.train import Settings, train
    >>> rows = [{"x": 1.0, "y": k % 3 == 0} for k in range(300)]
    >>> history = History(proof=certificate_values)
    >>> _ = train(rows, Settings(alpha=1.0), label="y", bits=4, certificate=True, progress=history)
    >>> history.close()
    >>> sorted(history.curves["proof"])
    ['bound', 'floor', 'loss', 'regret']

    Survey: Lemma 5 and Theorem 12
    """
    model = progress.model
    if not model.rounds:
        return {}
    seen = model.active_coordinates
    proof = model.certificate(among=seen)
    norm, gradient_norm = L2(model.weights_at(seen).ravel().astype(float)), L2(proof.gradients)
    values = {"loss": proof.loss, "regret": proof.worst(l2=norm)}
    if not proof.floor_void:
        values["floor"] = proof.loss_floor(l2=norm) * proof.weight
    worst = proof.gradients * (-norm / gradient_norm if gradient_norm else 0.0)
    if not proof.void and (proof.radius is None or LINF(worst) <= proof.radius):
        values["bound"] = proof.bound(worst)
    return {name: value / (proof.weight or 1.0) for name, value in values.items()}
