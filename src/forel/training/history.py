"""The course of training: a few numbers at moments that come ever more rarely, so that it takes next to no memory."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from forel.learner.mixture import Mixture
from forel.theory.norms import L2, LINF
from forel.training.train import Moment

__all__ = ["Curve", "History", "Probe", "proofs", "shares"]

Probe = Callable[[Moment], Mapping[str, float]]
OFTEN = 2**0.25  # losses are looked at four times while rows double
RARELY = 2.0  # probes once: some go through all of a model


@dataclass(frozen=True)
class Curve:
    """Numbers over rows.

    >>> curve = Curve()
    >>> for rows, value in [(10, 0.5), (10, 0.5), (20, float("nan")), (40, 0.25)]:
    ...     curve.add(rows, value)
    >>> curve.rows, curve.values
    ([10, 40], [0.5, 0.25])
    """

    rows: list[int] = field(default_factory=list)
    values: list[float] = field(default_factory=list)

    def add(self, rows: int, value: float) -> None:
        """Go on to a number after more rows; one that is not known is left out."""
        if math.isfinite(value) and (not self.rows or rows > self.rows[-1]):
            self.rows.append(rows)
            self.values.append(value)


class History:
    """Curves of training, by group and name; give it to ``train`` as ``progress``, and :meth:`close` it afterwards.

    The group "loss" is of the first pass, over rows learned from in it: the "average", that "since" the point before,
    and the average of rows "held out". Every probe is a group of its own, over all rows the model ever learned from.

    Parameters
    ----------
    probes : functions of a moment, by the names of their groups, which return numbers by name

    >>> from forel.training.train import train
    >>> clicks = [{"site": "news", "click": 1}, {"site": "shop", "click": 0}] * 50
    >>> history = History(bias=lambda moment: {"weight": float(moment.model.bias[0])})
    >>> _ = train(clicks, label="click", bits=10, block_bytes=1000, progress=history)
    >>> history.close()
    >>> history.curves["loss"]["average"].rows[-1], history.curves["bias"]["weight"].rows[-1]
    (100, 100)
    """

    def __init__(self, **probes: Probe) -> None:
        self.curves: dict[str, dict[str, Curve]] = {"loss": {}, **{group: {} for group in probes}}
        self._probes = probes
        self._last: Moment | None = None
        self._due = {"loss": 0.0, "probes": 0.0}
        self._before = 0.0, 0.0  # weight and sum of losses at the point before

    def __call__(self, moment: Moment) -> None:
        """Look at a moment, if it is time to."""
        before, self._last = self._last, moment
        if before is not None and before.turn == 1 < moment.turn:
            self._look(before)
        if moment.turn == 1 and moment.rows >= self._due["loss"]:
            self._due["loss"] = OFTEN * moment.rows
            self._look(moment)
        if self._probes and moment.model.rounds >= self._due["probes"]:
            self._due["probes"] = RARELY * moment.model.rounds
            self._ask(moment)

    def close(self) -> None:
        """Add the end of training to every curve."""
        if self._last is not None:
            if self._last.turn == 1:
                self._look(self._last)
            self._ask(self._last)
            self._last = None

    def _look(self, moment: Moment) -> None:
        total = moment.seen.report()
        if not total.weight:
            return
        weight, summed = self._before
        self._before = total.weight, total.loss * total.weight
        since = (self._before[1] - summed) / (total.weight - weight) if total.weight > weight else math.nan
        self._add("loss", total.rows, {"average": total.loss, "since": since})
        held = moment.held.report()
        if held.rows:
            self._add("loss", total.rows, {"held out": held.loss})

    def _ask(self, moment: Moment) -> None:
        for group, probe in self._probes.items():
            self._add(group, moment.model.rounds, probe(moment))

    def _add(self, group: str, rows: int, found: Mapping[str, float]) -> None:
        for name, value in found.items():
            self.curves[group].setdefault(name, Curve()).add(rows, value)


def shares(moment: Moment) -> dict[str, float]:
    """Return the weight of each of a mixture's settings: a probe; nothing for one model.

    >>> from forel.training.train import Settings, train
    >>> rows = [{"x": 1.0, "y": k % 3 == 0} for k in range(300)]
    >>> history = History(shares=shares)
    >>> _ = train(rows, Settings(alpha=(0.1, 1.0)), label="y", bits=4, progress=history)
    >>> history.close()
    >>> sorted(history.curves["shares"])
    ['alpha=0.1', 'alpha=1']

    Survey: section 3.6
    """
    model = moment.model
    if not isinstance(model, Mixture):
        return {}
    return {name: float(share) for name, share in zip(model.names, model.posterior, strict=True)}


def proofs(moment: Moment) -> dict[str, float]:
    r"""Return what is proved of a certified model so far, per row: a probe.

    "regret" is the largest one against any fixed model of at most the learned one's norm, "bound" what the theorem
    allows against that model (unless it is void), "loss" the learner's own, "floor" what no such model is below.

    >>> import numpy as np
    >>> from forel.training.train import Settings, train
    >>> rows = [{"x": 1.0, "y": k % 3 == 0} for k in range(300)]
    >>> history = History(proof=proofs)
    >>> _ = train(rows, Settings(alpha=1.0), label="y", bits=4, certified=True, progress=history)
    >>> history.close()
    >>> sorted(history.curves["proof"])
    ['bound', 'floor', 'loss', 'regret']

    Survey: Lemma 5 and Theorem 12
    """
    model = moment.model
    if not model.rounds:
        return {}
    seen = model.seen
    proof = model.certificate(among=seen)
    norm, pull = L2(model.weights_at(seen).ravel().astype(float)), L2(proof.gradients)
    said = {"loss": proof.loss, "regret": proof.worst(l2=norm)}
    if not proof.floor_void:
        said["floor"] = proof.loss_floor(l2=norm) * proof.weight
    best = proof.gradients * (-norm / pull if pull else 0.0)
    if not proof.void and (proof.radius is None or LINF(best) <= proof.radius):
        said["bound"] = proof.bound(best)
    return {name: value / (proof.weight or 1.0) for name, value in said.items()}
