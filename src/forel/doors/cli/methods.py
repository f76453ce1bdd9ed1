"""``forel methods``: the table of ``docs/argmin.md``, with penalties grouped by method."""

from rich.console import Console
from rich.table import Table

from forel.theory.argmin import SOLVER
from forel.theory.argmin.methods import GEOMETRIES, REFUSED, method, penalties, sets

_STYLES = {SOLVER: "yellow", REFUSED: "dim"}


def show(part: str, n: int = 4) -> None:
    """Print one table for each geometry whose name contains ``part``."""
    chosen = {name: g for name, g in GEOMETRIES.items() if part.lower() in name.lower()}
    if not chosen:
        raise ValueError(f"geometry: got {part!r}, expected part of one of {', '.join(GEOMETRIES)}")
    console = Console()
    for name, geometry in chosen.items():
        table = Table("over X", "solved by", "with Ψ", title=f"argmin z·x + α Ψ(x) + φ_σ(x), φ: {name}")
        for label, feasible in sets(n).items():
            found: dict[str, list[str]] = {}
            for penalty_name, penalty in penalties(n).items():
                found.setdefault(method(geometry, penalty, feasible), []).append(penalty_name)
            for how, names in found.items():
                table.add_row(label, how, ", ".join(names), style=_STYLES.get(how))
                label = ""
        console.print(table)
