"""``forel dev survey``: recompute and check every numbered result, and related statements."""

import math
import pathlib
import time
from typing import TYPE_CHECKING, Annotated

import typer

from forel.cli.errors import errors_as_messages
from forel.cli.options import AsJson
from forel.cli.printing import print_json, say
from forel.markup import counted

if TYPE_CHECKING:
    from rich.table import Table

    from forel.theory.survey import Outcome, Result


def survey(
    only: Annotated[str, typer.Option(help="A number or a name: 11, 'theorem 11', figure, delay, …")] = "",
    as_json: AsJson = False,
    plots: Annotated[pathlib.Path | None, typer.Option(help="Draw the figures into this folder.")] = None,
) -> None:
    """Recompute and check every result of the survey.

    These are its theorems, lemmas, algorithms and figures, and in a second
    table statements beyond it: hints, delay, curvature, and others. The exit
    code is 1 if a check fails.

    \b
    Examples:
      forel dev survey
      forel dev survey --only 11
      forel dev survey --only delay
      forel dev survey --plots figures
    """
    with errors_as_messages():
        rows = _recomputed(_selected(only))
        if as_json:
            print_json([_row(*row) for row in rows])
        else:
            _print(rows)
        if plots is not None:
            _draw(plots)
            say(f"Figures: {plots}", err=as_json)
    if not all(result.holds(outcome) for result, outcome, _ in rows):
        raise typer.Exit(1)


def _selected(only: str) -> "tuple[Result, ...]":
    """Return the results whose number or name contains ``only``."""
    from forel.theory.survey import EXTENSIONS, RESULTS
    from forel.validation import refuse

    name, known = only.strip().lower(), (*RESULTS, *EXTENSIONS)
    found = tuple(r for r in known if name in (r.key.lower(), r.key.split()[1]) or r.key.lower().startswith(name))
    if not found:
        raise refuse("only", only, "a number or a name such as 11, 'theorem 11' or 'figure 4'")
    return found


def _recomputed(results: "tuple[Result, ...]") -> "list[tuple[Result, Outcome, float]]":
    """Return each result with what was measured, and the seconds that it took."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    from forel.cli.tables import open_console

    rows = []
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn()
    with Progress(*columns, console=open_console(stderr=True), transient=True) as bar:
        task = bar.add_task("recomputing", total=len(results))
        for result in results:
            bar.update(task, description=f"{result.key}: {result.title}")
            start = time.perf_counter()
            outcome = result.run()
            rows.append((result, outcome, time.perf_counter() - start))
            bar.advance(task)
    return rows


def _print(rows: "list[tuple[Result, Outcome, float]]") -> None:
    from forel.cli.tables import open_console
    from forel.theory.survey import EXTENSIONS

    console, beyond = open_console(), {result.key for result in EXTENSIONS}
    for title, further in (("The survey", False), ("Beyond the survey", True)):
        if shown := [row for row in rows if (row[0].key in beyond) == further]:
            console.print(_table(shown, console.width, title))
    failed = [result.key for result, outcome, _ in rows if not result.holds(outcome)]
    total = sum(seconds for *_, seconds in rows)
    verdict = f"{', '.join(failed)} failed" if failed else "all hold"
    say(f"{counted(len(rows), 'result')} recomputed in {total:.1f} s: {verdict}", err=False)


def _row(result: "Result", outcome: "Outcome", seconds: float) -> dict[str, object]:
    return {
        "result": result.key,
        "title": result.title,
        "measured": _finite(outcome.measured),
        "relation": result.relation,
        "bound": _finite(outcome.bound),
        "slack": _finite(outcome.bound - outcome.measured),
        "tight": bool(result.tight(outcome)),
        "holds": bool(result.holds(outcome)),
        "case": outcome.case,
        "seconds": round(seconds, 3),
    }


def _finite(value: float) -> float | None:
    """Return a number that JSON has."""
    return float(value) if math.isfinite(value) else None


def _table(rows: "list[tuple[Result, Outcome, float]]", width: int, title: str) -> "Table":
    """Return the table; a narrow terminal gets it without the cases."""
    from rich.table import Table

    wide = width >= 130
    table = Table(
        "result", "statement", "measured", "", "bound", "slack", "tight", "verdict", *["case"] * wide, title=title
    )
    for column in (2, 4, 5):
        table.columns[column].justify = "right"
        table.columns[column].no_wrap = True
    for result, outcome, _ in rows:
        holds = result.holds(outcome)
        slack = outcome.bound - outcome.measured
        table.add_row(
            result.key,
            result.title,
            f"{outcome.measured:.4g}",
            result.relation,
            f"{outcome.bound:.4g}",
            f"{0.0 if holds and abs(slack) < 1e-12 * outcome.bound else slack:.2g}",
            "tight" if result.tight(outcome) else "",
            "holds" if holds else "FAILS",
            *[outcome.case] * wide,
            style="" if holds else "red",
        )
    return table


def _draw(folder: pathlib.Path) -> None:
    """Draw the figures of the survey, and two that it describes in text."""
    import numpy as np

    from forel.theory import plot
    from forel.theory.algorithms import dual_averaging, greedy_projection, lazy_projection
    from forel.theory.analysis import bound, play
    from forel.theory.analysis.streams import random_linear
    from forel.theory.sets import l2_ball

    folder.mkdir(parents=True, exist_ok=True)
    plot.save(plot.figure_4(), folder / "figure_4.png")
    trace = play(dual_averaging(1.0, 1.0, l2_ball(1.0)), random_linear(2, 200))
    total = trace.gradients.sum(axis=0)
    best = -total / np.linalg.norm(total)
    limit = bound(trace, best, "losses")
    plot.save(plot.regret(trace, best, limit.over_rounds), folder / "regret_and_bound.png")
    parts = plot.decomposition(limit.regularization, limit.stability, trace.regrets(best) - limit.over_rounds)
    plot.save(parts, folder / "decomposition.png")
    for name, make in (("lazy", lazy_projection), ("greedy", greedy_projection)):
        path = play(make(0.3, l2_ball(1.0)), random_linear(2, 60))
        plot.save(plot.path(path), folder / f"figure_6_{name}.png")
