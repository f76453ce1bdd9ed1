"""``forel inspect``: the content of a model file."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, fields
from itertools import islice
from typing import Annotated, Any

import typer

from forel.cli.errors import errors_as_messages
from forel.cli.options import AsJson, Key
from forel.cli.printing import mixture_summary, print_json, say
from forel.markup import counted, number_text

MAX_COLUMNS = 20  # of a schema that is printed
MAX_KEYS = 20
MAX_LARGEST = 5  # columns, without --details
DETAILS = ("report", "names", "slots that names share", "norm, bias included")
SHORT = 120  # characters of a fact, without --details


def inspect(
    model: Annotated[str, typer.Argument(help="A model file.")],
    top: Annotated[int, typer.Option(help="Number of largest weights to show.", min=0)] = 8,
    details: Annotated[
        bool, typer.Option("--details", help="Show all facts, and all experts and their kinds.")
    ] = False,
    as_json: AsJson = False,
    key: Key = None,
) -> None:
    """Show the settings, experts, weights and certificate of a model.

    Weights have names if the model was trained with --names. They are ordered
    by the standard deviation of what they add to the margin of a row, or
    without a sample of rows, as in serving models, by weight.

    Example: forel inspect m.forel --top 50
    """
    with errors_as_messages():
        from rich.markup import escape
        from rich.table import Table

        from forel.cli.tables import expert_tables, open_console
        from forel.learner.keyed import KeyedModels
        from forel.training.model import load

        stored = load(model)
        if key is not None:
            stored = stored.of_key(key)
        elif isinstance(stored.learner, KeyedModels):
            _print_keys(stored, as_json)
            return
        found = _describe(stored, top)
        if as_json:
            print_json(found)
            return
        console = open_console()
        if found["floor"] and (verdict := found["floor"].get("verdict")):
            say(verdict, err=False)
        table = Table("", escape(model))
        for name in ("mixture", "floor"):
            found.pop(name)
        curves = found.pop("curves")
        for name, value in found.items():
            if isinstance(value, dict):
                shown = {k: _count_kinds(v) if k == "kinds" else _text(v) for k, v in value.items() if v is not None}
                if name == "schema":
                    shown = {k: _column_text(column) for k, column in islice(value.items(), MAX_COLUMNS)}
                text = ", ".join(f"{k}={v}" for k, v in shown.items())
                if details or (name not in DETAILS and len(text) <= SHORT):
                    table.add_row(name, escape(text))
            elif (
                name not in ("weights", "columns", "measure") and value is not None and (details or name not in DETAILS)
            ):
                # Metrics are those of the first pass of one run.
                more = name == "rows" and (found.get("report") or {}).get("rows", value) != value
                text = _text(value)
                table.add_row(name + ", in all passes and runs" * more, escape(text if details else _short(text)))
        console.print(table)
        explanation = stored.inspect().mixture
        if explanation is not None:
            if details:
                for each in expert_tables(explanation):
                    console.print(each)
            notes = explanation.notes if details else explanation.notes[-1:]
            for note in (*notes, "Weights below are those of the best setting or filter."):
                say(note, err=False)
        brief = curves is not None and not details  # curves say the same of columns, and all have to fit a screen
        if found["columns"] and not brief:
            spreads = Table("column", "features", "std. dev. of its contribution", title="largest columns")
            for column in found["columns"][: top if details else MAX_LARGEST]:
                spreads.add_row(escape(column["column"]), f"{column['features']:,}", _decimals(column["spread"]))
            console.print(spreads)
        if curves is not None:
            drawn = Table("column", "from", "to", "curve", "std. dev. over it", title=f"curves: {curves['expert']}")
            for one in curves["columns"][: top if details else MAX_LARGEST]:
                ends = number_text(one["knots"][0]), number_text(one["knots"][-1])
                drawn.add_row(escape(one["column"]), *ends, _spark(one["values"]), _decimals(one["spread"]))
            console.print(drawn)
            if strongest := curves["pairs"][:MAX_LARGEST]:
                text = ", ".join(
                    f"{one['first']} × {one['second']} ({_decimals(one['spread'], '.3f')})" for one in strongest
                )
                say(f"Strongest pairs: {text}.", err=False)
        several = any("class" in weight for weight in found["weights"])
        columns = "slot", "name", "weight", found["measure"], "contribution", *(["class"] if several else [])
        title = "largest weights: no sample of rows was kept" if found["measure"] == "unit" else "largest contributions"
        largest = Table(*columns, title=title)
        for weight in found["weights"][: MAX_LARGEST if brief else None]:
            name = (weight["name"] or "") + (" and others" if weight["shared"] else "")
            label = [escape(weight["class"])] if several else []
            numbers = f"{weight['weight']:+.5g}", f"{weight['spread']:.3g}", _decimals(weight["contribution"], "+.4f")
            largest.add_row(str(weight["slot"]), escape(name), *numbers, *label)
        console.print(largest)
        if stored.estimator is None and not all(weight["name"] for weight in found["weights"]):
            say("Slots without a name: forel train --names keeps names.", err=False)
        if not details:
            say("All facts, and all experts: forel inspect --details.", err=False)


def _short(text: str) -> str:
    return text if len(text) <= SHORT else f"{text[:SHORT].rstrip(', ')} … (--details)"


def _print_keys(stored: Any, as_json: bool) -> None:
    """Print the rows and the non-zero weights of the model of each key, those with the most rows first."""
    from rich.markup import escape
    from rich.table import Table

    from forel.cli.tables import MISSING, align_numbers, open_console

    models = stored.learner
    learners = [(key, models.models[key].learner) for key in models]
    keys = [{"key": key, "rows": one.rounds, "non-zeros": one.nonzeros} for key, one in learners]
    if as_json:
        print_json({"kind": "models by key", "by": models.by, "keys": keys, "report": stored.extra.get("report")})
        return
    table = Table(escape(models.by), "rows", "non-zero weights", title=counted(len(keys), "model"))
    align_numbers(table)
    for one in sorted(keys, key=lambda one: -one["rows"])[:MAX_KEYS]:
        table.add_row(escape(one["key"] or MISSING), f"{one['rows']:,}", f"{one['non-zeros']:,}")
    open_console().print(table)
    fallback = ", and one of all rows" if models.fallback is not None else ""
    counts = f"{counted(models.rounds, 'row')}, {counted(models.nonzeros, 'non-zero weight')}"
    say(f"{counts}{fallback}. --key shows one model.", err=False)


def _describe(stored: Any, top: int) -> dict[str, Any]:
    import numpy as np

    from forel.store import ServingModel

    model = stored.learner
    trainable = not isinstance(model, ServingModel)
    mixture = mixture_summary(model) if trainable else None
    slots = model.active_coordinates[model.active_coordinates < model.features] if trainable else model.slots
    kept = model.weights_at(slots) if trainable else model.weights.astype(np.float32)
    names = stored.names
    settings, inspected = stored.settings, stored.inspect(top)
    return {
        "kind": "mixture, which can continue training"
        if mixture is not None
        else "learner, which can continue training"
        if trainable
        else "serving model, for predictions only",
        "mixture": mixture,
        "settings": {f.name: _setting(settings, f.name) for f in fields(settings)},
        "reading": stored.extra.get("reading"),
        "schema": stored.extra.get("schema"),
        "rows": model.rounds,
        "features": model.features,
        "non-zeros": int(np.count_nonzero(kept)),
        "bias": float(model.bias[0]),
        "norm, bias included": float(np.sqrt((kept.astype(float) ** 2).sum() + (model.bias.astype(float) ** 2).sum())),
        "report": stored.extra.get("report"),
        "holdout": stored.extra.get("holdout"),
        "final": stored.extra.get("final"),
        "names": None if names is None else len(names),
        "slots that names share": None if names is None else names.collisions,
        "certificate": stored.certificate,
        "floor": stored.floor,
        "columns": stored.extra.get("columns"),
        "measure": inspected.measure,
        "curves": None if inspected.curves is None else asdict(inspected.curves),
        "weights": [
            {
                **{name: getattr(one, name) for name in ("slot", "name", "shared", "weight", "spread", "contribution")},
                **({} if one.label is None else {"class": one.label}),
            }
            for one in inspected.weights
        ],
    }


def _spark(values: Sequence[float]) -> str:
    """Return numbers as a line of eight heights."""
    low, high = min(values), max(values)
    return "".join("▁▂▃▄▅▆▇█"[min(int((one - low) / (high - low or 1.0) * 8), 7)] for one in values)


def _setting(settings: Any, name: str) -> Any:
    """Return a setting as JSON, a range for several lanes."""
    value = getattr(settings, name)
    return value if isinstance(value, str | float | int | bool | None) else settings.describe(name)


def _column_text(schema: dict[str, Any]) -> str:
    """Return the kind, range and share of missing values of a column."""
    if "low" not in schema:
        return str(schema["kind"])
    missing = f", {schema['missing']:.1%} missing" if schema["missing"] else ""
    return f"{schema['kind']} {number_text(schema['low'])} to {number_text(schema['high'])}{missing}"


def _text(value: Any) -> str:
    """Return the text of a value, with six digits."""
    if isinstance(value, bool):
        return str(value)
    return number_text(value) if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)


def _count_kinds(kinds: dict[str, str]) -> str:
    """Return the number of columns of each kind, and which label is positive."""
    from forel.data.labels import LabelWords

    words = [found for kind in kinds.values() if (found := LabelWords.of_kind(kind)) is not None]
    counts = Counter(kind for kind in kinds.values() if LabelWords.of_kind(kind) is None)
    shown = " and ".join(f"{count} {kind}" for kind, count in sorted(counts.items()))
    return "; ".join(filter(None, [shown, *(one.summary() for one in words)]))


def _decimals(value: float, form: str = ".4f") -> str:
    """Return a number in a form without an exponent, unless it has more than six digits before the point."""
    return format(value, form if abs(value) < 1e6 else form.replace("f", "g"))
