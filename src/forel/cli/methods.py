"""``forel dev methods``: the table of ``docs/argmin.md``, with penalties grouped by method."""

from typing import Annotated

import typer

from forel.cli.errors import errors_as_messages


def methods(
    geometry: Annotated[str, typer.Argument(help="Part of a geometry's name, such as diag; all when left out.")] = "",
) -> None:
    """Show how each argmin is solved: in closed form, or by a solver.

    Combinations that neither can solve are shown as well.

    Example: forel dev methods entropy
    """
    with errors_as_messages():
        _print(geometry)


def _print(geometry: str) -> None:
    from rich.table import Table

    from forel.cli.tables import open_console
    from forel.theory.argmin import SOLVER
    from forel.theory.argmin.methods import GEOMETRIES, REFUSED, method, penalties, sets
    from forel.validation import refuse

    chosen = {name: g for name, g in GEOMETRIES.items() if geometry.lower() in name.lower()}
    if not chosen:
        raise refuse("geometry", geometry, f"part of one of {', '.join(GEOMETRIES)}")
    styles, n, console = {SOLVER: "yellow", REFUSED: "dim"}, 4, open_console()
    for name, regularizer in chosen.items():
        table = Table("over X", "solved by", "with Ψ", title=f"argmin z·x + α Ψ(x) + φ_σ(x), φ: {name}")
        for label, feasible in sets(n).items():
            by_method: dict[str, list[str]] = {}
            for penalty_name, penalty in penalties(n).items():
                by_method.setdefault(method(regularizer, penalty, feasible), []).append(penalty_name)
            for solved_by, names in by_method.items():
                table.add_row(label, solved_by, ", ".join(names), style=styles.get(solved_by))
                label = ""
        console.print(table)
