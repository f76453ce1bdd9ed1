"""Models by key, as a table of the terminal."""

from collections.abc import Sequence
from typing import Any

from rich.markup import escape
from rich.table import Table

from forel.cli.tables import align_numbers

__all__ = ["key_table"]

SHOWN = 20  # keys with the most rows
MISSING = "(missing)"


def key_table(by: str, keys: Sequence[dict[str, Any]], loss: str) -> Table:
    """Return a table of the keys with the most rows, and of all others.

    Parameters
    ----------
    by : the name of the column of keys
    keys : metrics of each, as :meth:`forel.training.result.KeySummary.to_json` returns them
    loss : the title of the loss
    """
    certified = any("certificate" in one for one in keys)
    held_out = any("holdout_rows" in one for one in keys)
    table = Table(
        escape(by), "rows", loss, *(["floor"] if certified else []), *(["held-out loss"] if held_out else []),
        title=f"{len(keys):,} models by {escape(by)}",
    )  # fmt: skip
    align_numbers(table)
    order = sorted(keys, key=lambda one: -one["rows"])
    shown, others = order[:SHOWN], order[SHOWN:]
    for one in shown:
        cells = [f"{one['rows']:,}", _number(one.get("loss"))]
        cells += [_number(one.get("floor"))] if certified else []
        cells += [_number(one.get("holdout_loss"))] if held_out else []
        table.add_row(escape(one["key"] or MISSING), *cells)
    if others:
        weight = sum(one["weight"] for one in others)
        total = sum(one["weight"] * one.get("loss", 0.0) for one in others)
        mean = _number(total / weight if weight else None)
        table.add_row(f"{len(others):,} others", f"{sum(one['rows'] for one in others):,}", mean)
    return table


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.4f}"
