"""Results of the survey, recomputed and checked, as a table or JSON, and its figures."""

import json
import pathlib
import time

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.table import Table

from forel.cli.console import open_console
from forel.theory.survey import EXTENSIONS, RESULTS, Outcome, Result


def select_results(only: str) -> tuple[Result, ...]:
    """Return the results whose number or name contains ``only``."""
    name = only.strip().lower()
    known = (*RESULTS, *EXTENSIONS)
    found = tuple(r for r in known if name in (r.key.lower(), r.key.split()[1]) or r.key.lower().startswith(name))
    if not found:
        raise ValueError(f"--only: got {only!r}, expected a number or a name such as 11, 'theorem 11' or 'figure 4'")
    return found


def run(only: str, as_json: bool, plots: pathlib.Path | None) -> bool:
    """Recompute, print a table or JSON, draw figures, and return whether all checks pass."""
    results, rows = select_results(only), []
    console, errors = open_console(), open_console(stderr=True)
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn()
    with Progress(*columns, console=errors, transient=True) as bar:
        task = bar.add_task("recomputing", total=len(results))
        for result in results:
            bar.update(task, description=f"{result.key}: {result.title}")
            start = time.perf_counter()
            outcome = result.run()
            rows.append((result, outcome, time.perf_counter() - start))
            bar.advance(task)
        if plots is not None:
            bar.update(task, description="drawing")
            _draw(plots)
    if as_json:
        print(json.dumps([_row(*row) for row in rows], indent=1, ensure_ascii=False))
    else:
        console.print(_table(rows, console.width))
        failed = [r.key for r, o, _ in rows if not r.holds(o)]
        total = sum(seconds for *_, seconds in rows)
        verdict = f"[red]{', '.join(failed)} failed[/]" if failed else "[green]all hold[/]"
        console.print(f"{len(rows)} recomputed in {total:.1f} s: {verdict}")
        if plots is not None:
            console.print(f"Figures are in {plots}")
    return all(r.holds(o) for r, o, _ in rows)


def _row(result: Result, outcome: Outcome, seconds: float) -> dict[str, object]:
    return {
        "result": result.key,
        "title": result.title,
        "measured": outcome.measured,
        "relation": result.relation,
        "bound": outcome.bound,
        "slack": outcome.bound - outcome.measured,
        "tight": result.tight(outcome),
        "holds": result.holds(outcome),
        "case": outcome.case,
        "seconds": round(seconds, 3),
    }


def _table(rows: list[tuple[Result, Outcome, float]], width: int) -> Table:
    """Return the table; a narrow terminal gets it without the cases."""
    wide = width >= 130
    table = Table("result", "statement", "measured", "", "bound", "slack", "tight", "verdict", *["case"] * wide)
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
