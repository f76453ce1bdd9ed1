"""``forel inspect``: the content of a model file."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, fields
from itertools import islice
from typing import Any

from forel.cli.errors import errors_as_messages
from forel.cli.printing import mixture_summary, print_experts, print_json, print_table, say, signed
from forel.markup import counted, number_text

MAX_FACTS = 20  # of those with the same name, such as the columns of a schema
MAX_KEYS = 20
MAX_LARGEST = 5  # columns, without --details
DETAILS = ("report", "names", "slots that names share", "norm, bias included", "certificate")
TABLES = ("mixture", "floor", "curves", "weights", "columns", "measure")  # which have a table or a line of their own
WEIGHT = ("slot", "name", "shared", "weight", "spread", "contribution")
SHORT = 120  # characters of a fact, without --details


def inspect(model: str, top: int = 8, details: bool = False, as_json: bool = False, key: str | None = None) -> None:
    """Show the settings, experts, weights and certificate of a model.

    Features have names after training on small tables, or with --names. They
    are ordered by the standard deviation of what they add to the margin of a
    row, or without a sample of rows, as in serving models, by weight.

    Example: forel inspect m.forel --top 50

    Arguments
    ---------
    model : A model file.

    Options
    -------
    top : Number of largest weights to show.
    details : Show all facts, and all experts and their kinds.
    as_json (--json) : Print JSON instead of text.
    key : The key of one of the models that --by trained.
    """
    with errors_as_messages():
        from forel.learner.keyed import KeyedModels
        from forel.training.model import load
        from forel.validation import whole

        whole("top", top)
        stored = load(model)
        if key is not None:
            stored = stored.of_key(key)
        elif isinstance(stored.learner, KeyedModels):
            _print_keys(stored, as_json)
            return
        found = _describe(stored, top)
        if as_json:
            print_json(found)
        else:
            _print(model, found, stored, top if details else min(top, MAX_LARGEST), details)


def _print(file: str, found: dict[str, Any], stored: Any, top: int, details: bool) -> None:
    if verdict := (found["floor"] or {}).get("verdict"):
        say(verdict, err=False)
    print_table(["", file], _facts(found, details), left=2)
    explanation = stored.inspect().mixture
    if explanation is not None:
        if details:
            print_experts(explanation)
        for note in explanation.notes if details else explanation.notes[-1:]:
            say(note, err=False)
    curves = found["curves"]
    brief = curves is not None and not details  # curves say the same of columns, and all have to fit a screen
    if found["columns"] and not brief:
        spreads = ([c["column"], f"{c['features']:,}", number_text(c["spread"], 4, 4)] for c in found["columns"][:top])
        print_table(["column", "features", "std. dev. of its contribution"], spreads, "largest columns")
    if curves is not None:
        columns = (
            [one["column"], _spark(one["values"]), *map(number_text, (one["knots"][0], one["knots"][-1])),
             number_text(one["spread"], 4, 4)] for one in curves["columns"][:top]
        )  # fmt: skip
        print_table(
            ["column", "curve", "from", "to", "std. dev. over it"], columns, f"curves: {curves['expert']}", left=2
        )
        pairs = (f"{p['first']} × {p['second']} ({number_text(p['spread'], 3, 3)})" for p in curves["pairs"])
        if strongest := ", ".join(islice(pairs, MAX_LARGEST)):
            say(f"Strongest pairs: {strongest}.", err=False)
    several = any("class" in weight for weight in found["weights"])
    title = "largest weights: no sample of rows was kept" if found["measure"] == "unit" else "largest contributions"
    title += "" if explanation is None else ", of the best setting or filter"
    largest = []
    for one in found["weights"][: MAX_LARGEST if brief else None]:
        name = (one["name"] or f"slot {one['slot']}") + (" and others" if one["shared"] else "")
        weight = "+" * (one["weight"] > 0) + number_text(one["weight"], digits=5)
        numbers = weight, number_text(one["spread"], digits=3), signed(one["contribution"])
        largest.append([name, *numbers, *([one["class"]] if several else [])])
    heads = ["feature", "weight", found["measure"], "contribution", *(["class"] if several else [])]
    print_table(heads, largest, title)
    if stored.estimator is None and not all(weight["name"] for weight in found["weights"]):
        say("Slots without a name: forel train --names keeps names.", err=False)
    if not details:
        say("All facts, and all experts: forel inspect --details.", err=False)


def _facts(found: dict[str, Any], details: bool) -> Iterator[tuple[str, str]]:
    """Yield the name and the text of each fact that has no table of its own."""
    for name, value in found.items():
        if value is None or name in TABLES or (name in DETAILS and not details):
            continue
        text = _text(value)
        if details or len(text) <= SHORT:
            # Metrics are those of the first pass of one run.
            more = name == "rows" and (found["report"] or {}).get("rows", value) != value
            yield name + ", in all passes and runs" * more, text


def _print_keys(stored: Any, as_json: bool) -> None:
    """Print the rows and the non-zero weights of the model of each key, those with the most rows first."""
    models = stored.learner
    learners = [(key, models.models[key].learner) for key in models]
    keys = [{"key": key, "rows": one.rounds, "non-zeros": one.nonzeros} for key, one in learners]
    if as_json:
        print_json({"kind": "models by key", "by": models.by, "keys": keys, "report": stored.extra.get("report")})
        return
    most = sorted(keys, key=lambda one: -one["rows"])[:MAX_KEYS]
    rows = ([one["key"] or "(missing)", f"{one['rows']:,}", f"{one['non-zeros']:,}"] for one in most)
    print_table([models.by, "rows", "non-zero weights"], rows, counted(len(keys), "model"))
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
    kind = "mixture" if mixture is not None else "learner"
    return {
        "kind": f"{kind}, which can continue training" if trainable else "serving model, for predictions only",
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
            {**{name: getattr(one, name) for name in WEIGHT}, **({} if one.label is None else {"class": one.label})}
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


def _text(value: Any) -> str:
    """Return the text of a value: numbers with six digits, columns of a schema with kind, range and missing values."""
    if isinstance(value, float):
        return number_text(value)
    if not isinstance(value, dict):
        return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
    if not isinstance(kind := value.get("kind"), str):
        shown = islice(((k, v) for k, v in value.items() if v is not None), MAX_FACTS)
        return ", ".join(f"{k}={_count_kinds(v) if k == 'kinds' else _text(v)}" for k, v in shown)
    missing = f", {value['missing']:.1%} missing" if value.get("missing") else ""
    return f"{kind} {number_text(value['low'])} to {number_text(value['high'])}{missing}" if "low" in value else kind


def _count_kinds(kinds: dict[str, str]) -> str:
    """Return the number of columns of each kind, and which label is positive."""
    from forel.data.labels import LabelWords

    words = [found for kind in kinds.values() if (found := LabelWords.of_kind(kind)) is not None]
    counts = Counter(kind for kind in kinds.values() if LabelWords.of_kind(kind) is None)
    shown = " and ".join(f"{count} {kind}" for kind, count in sorted(counts.items()))
    return "; ".join(filter(None, [shown, *(one.summary() for one in words)]))
