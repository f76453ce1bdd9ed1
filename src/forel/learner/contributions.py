r"""What the experts of a mixture contribute: losses, weights, and the loss of a mixture without experts of one kind.

Bayes' rule over a set S of experts with equal prior weights has the total log-loss
$L_S = \log|S| - \log\sum_{k \in S} e^{-L_k}$, for rows of importance 1, so that the total losses of experts give the
loss of a mixture of any of them. For other importances, with η the rate of the weights, $\frac1\eta\bigl(\log|S| -
\log\sum_{k \in S} e^{-\eta L_k}\bigr)$ is an upper bound. Other rules have no such formula.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from forel.learner.mixture import Mixture
from forel.losses.margin import Mixing
from forel.markup import Element, counted, html, tag

__all__ = ["ExpertContribution", "KindContribution", "MixtureExplanation", "explain"]

EXPERT_COLUMNS = "expert", "kind", "average loss", "behind the best", "weight"
KIND_COLUMNS = "kind", "experts", "weight", "its best", "best of the others"


@dataclass(frozen=True)
class ExpertContribution:
    """One expert of a mixture.

    Parameters
    ----------
    name : the parameters in which it differs from others
    kind : "setting", "filter", "full filter", "mixer" or "fixed share"
    loss : its average loss
    behind : its average loss less that of the best expert
    weight : in the next prediction
    """

    name: str
    kind: str
    loss: float
    behind: float
    weight: float


@dataclass(frozen=True)
class KindContribution:
    """All experts of one kind.

    Parameters
    ----------
    kind : as in :class:`ExpertContribution`
    experts : how many there are
    weight : the sum of their weights
    loss : the average loss of the best of them
    others : the average loss of the best expert of another kind; None if there is none
    without : the average loss of a mixture of the experts of other kinds, less that of the mixture; negative if the
        kind cost more than it contributed. None where it cannot be computed. Mixers are not learned anew: they keep
        their inputs, and so does fixed share, which weighs all other experts
    """

    kind: str
    experts: int
    weight: float
    loss: float
    others: float | None
    without: float | None


@dataclass(frozen=True)
class MixtureExplanation:
    """What each expert of a mixture contributes, over the rows of the first pass.

    Parameters
    ----------
    rows : how many there are
    title : the name of the loss
    loss : the average loss of the mixture
    experts : in the order of the mixture
    kinds : of experts
    guarantee : the bound on the loss of the mixture, in a sentence
    exact : whether ``without`` of kinds is exact; otherwise it is an upper bound

    >>> from forel.learner.learner import Learner
    >>> from forel.learner.settings import Settings
    >>> model = Learner(1, Settings(alpha=(0.1, 1.0), rate="scale_free", filters=[(0.3, 0.0)]))
    >>> _ = model.learn(np.ones((50, 1)), [1] * 50)
    >>> print(model.explain())
    6 experts over 50 rows, average log-loss 0.08...
    expert                             kind         average loss  behind the best  weight
    mixer                              mixer            0.06...        +0.000000  0.5...
    alpha=1                            setting          0.07...
    kind         experts  weight  its best  best of the others  without it
    setting            2  0.2...
    filter             1  0.00...
    mixer              2  0.6...            0.07...   +0.01...
    fixed share        1  0.08...
    Without it: what the average loss would be without experts of the kind, less that of the mixture. ...
    """

    rows: int
    title: str
    loss: float
    experts: tuple[ExpertContribution, ...]
    kinds: tuple[KindContribution, ...]
    guarantee: str
    exact: bool

    def __str__(self) -> str:
        blocks = [_aligned(EXPERT_COLUMNS, self.expert_rows(), 2), _aligned(self.kind_columns, self.kind_rows(), 1)]
        return "\n".join([self.headline, *blocks, *self.notes])

    def _repr_html_(self) -> str:
        return html(tag("div", tag("p", self.headline), *self.tables(), *(tag("p", note) for note in self.notes)))

    def tables(self) -> tuple[Element, Element]:
        """Return the tables of experts and of kinds as elements of a page."""
        return _table(EXPERT_COLUMNS, self.expert_rows()), _table(self.kind_columns, self.kind_rows())

    @property
    def headline(self) -> str:
        """The number of experts and rows, and the mixture's loss."""
        return f"{len(self.experts)} experts over {counted(self.rows, 'row')}, average {self.title} {self.loss:.5g}"

    @property
    def notes(self) -> tuple[str, ...]:
        """The definition of the last column of kinds, if it is there, and the guarantee."""
        measured = any(one.without is not None for one in self.kinds)
        less = "what the average loss would be without experts of the kind, less that of the mixture"
        limit = "" if self.exact else "; an upper bound, because importances differ from 1"
        defined = (f"Without it: {less}{limit}. Mixers and fixed share keep their inputs.",) if measured else ()
        return (*defined, f"Mixture: {self.guarantee}.")

    @property
    def kind_columns(self) -> tuple[str, ...]:
        """The titles of :meth:`kind_rows`."""
        measured = any(one.without is not None for one in self.kinds)
        return (*KIND_COLUMNS, "without it" if self.exact else "without it, at most") if measured else KIND_COLUMNS

    def expert_rows(self) -> list[tuple[str, ...]]:
        """Return the rows of the table of experts as text, the best first."""
        return [
            (one.name, one.kind, _loss(one.loss), _loss(one.behind, "+"), f"{one.weight:.4f}")
            for one in sorted(self.experts, key=lambda one: one.loss)
        ]

    def kind_rows(self) -> list[tuple[str, ...]]:
        """Return the rows of the table of kinds as text."""
        return [
            (
                *(one.kind, str(one.experts), f"{one.weight:.4f}", _loss(one.loss)),
                "" if one.others is None else _loss(one.others),
                *(() if one.without is None else (_loss(one.without, "+"),)),
            )
            for one in self.kinds
        ]


def _loss(value: float, sign: str = "") -> str:
    """Return a loss for a table; a large one without a fraction."""
    return f"{value:{sign},.0f}" if abs(value) >= 1e5 else f"{value:{sign}.6f}"


def explain(mixture: Mixture) -> MixtureExplanation:
    """Return what each expert of a mixture contributes."""
    ledger, names, kinds = mixture.ledger, mixture.names, mixture.kinds
    total, losses, weights = ledger.total_importance or 1.0, ledger.losses, mixture.weights()
    averages, best = losses / total, losses.min()
    experts = tuple(
        ExpertContribution(name, kind, float(average), float((loss - best) / total), float(weight))
        for name, kind, average, loss, weight in zip(names, kinds, averages, losses, weights, strict=True)
    )
    of_kind = {kind: np.array([one == kind for one in kinds]) for kind in dict.fromkeys(kinds)}
    bayes = mixture.rule is Mixing.BAYES and mixture.share is None
    rate, found = mixture.rate(), []
    for kind, mask in of_kind.items():
        own, other = losses[mask], losses[~mask]
        without = (bayes_loss(other, rate) - ledger.loss) / total if bayes and other.size else None
        least = float(other.min() / total) if other.size else None
        weight = float(weights[mask].sum())
        found.append(KindContribution(kind, own.size, weight, float(own.min() / total), least, without))
    exact = ledger.largest_importance <= 1 and ledger.total_importance == ledger.rows
    proved = str(mixture.guarantee())
    title, loss = mixture.settings.title, ledger.loss / total
    return MixtureExplanation(ledger.rows, title, loss, experts, tuple(found), proved, exact)


def bayes_loss(losses: "np.ndarray[tuple[int], np.dtype[np.float64]]", rate: float) -> float:
    r"""Return $\frac1\eta(\log K - \log\sum_k e^{-\eta L_k})$, the loss of Bayes' rule over K experts with losses L.

    >>> round(bayes_loss(np.zeros(3), 1.0), 9), round(bayes_loss(np.array([5000.0, 6000.0]), 1.0), 3)
    (0.0, 5000.693)
    """
    least = float(losses.min())
    return least - float(np.log(np.exp(-rate * (losses - least)).mean())) / rate


def _aligned(columns: Sequence[str], rows: Sequence[Sequence[str]], left: int) -> str:
    """Return a table as lines of text, of which the first columns are aligned to the left."""
    widths = [max(map(len, column)) for column in zip(columns, *rows, strict=True)]
    return "\n".join(
        "  ".join(
            cell.ljust(w) if k < left else cell.rjust(w) for k, (cell, w) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in (columns, *rows)
    )


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Element:
    """Return a table as HTML."""
    head = tag("tr", *(tag("th", name, scope="col") for name in columns))
    body = (tag("tr", tag("th", row[0], scope="row"), *(tag("td", cell) for cell in row[1:])) for row in rows)
    return tag("table", head, *body)
