"""Options of commands.

Those of training and reading are a table: a field of a dataclass gives the type and the default, and an entry of
``OPTIONS`` the help. ``commands.expand_flags`` replaces a command's parameter ``reading``, of the type
:class:`ReadingFlags`, by the flags of reading that the command takes.
"""

import csv
import shlex
import sys
from dataclasses import dataclass, fields
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from forel.cli.printing import say

if TYPE_CHECKING:
    from forel.training.model import Model

__all__ = [
    "COMMON_OPTIONS",
    "NO_FLAGS",
    "OPTIONS",
    "VW",
    "AsJson",
    "Data",
    "Files",
    "Key",
    "Option",
    "ReadingFlags",
    "Threads",
    "TrainOptions",
    "load_one",
    "source_of",
]

VW = "For Vowpal Wabbit users"

Files = Annotated[
    list[str] | None, typer.Argument(help="Files, patterns, or - for standard input.", show_default=False)
]
Data = Annotated[
    list[str] | None,
    typer.Option("-d", "--data", help="A file, as an argument without -d; repeatable.", rich_help_panel=VW),
]
Threads = Annotated[
    int | None,
    typer.Option(
        help="Number of parser threads; results do not depend on it.", rich_help_panel="Reading", show_default=False
    ),
]
Key = Annotated[str | None, typer.Option(help="The key of one of the models that --by trained.", show_default=False)]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]

SEPARATORS = {"comma": ",", "semicolon": ";", "tab": "\t", "\\t": "\t", "pipe": "|", "space": " "}
# The commands that take a flag.
TRAIN = ("train",)
LABELLED = ("train", "convert", "evaluate")
MEASURE = ("train", "evaluate")
SCORE = ("predict", "evaluate")
READ = ("train", "convert", "predict", "evaluate", "explain")
ALL = (*READ, "peek")
# What --help shows; --help-all shows all options.
COMMON_OPTIONS = frozenset(
    {
        *("files", "loss", "alpha", "l1", "passes", "shuffle", "share", "by", "quiet", "as_json"),
        *("holdout", "holdout_after", "certificate", "report", "model", "serving", "predictions", "start"),
        *("checkpoint", "resume", "bits", "names", "format", "label", "positive", "classes", "importance", "keep"),
        *("ignore", "categories", "text", "date", "interactions", "help_all"),
    }
)


class Option(NamedTuple):
    """The panel, the commands and the help of an option, and its names if they are not that of the field."""

    panel: str | None
    commands: tuple[str, ...]
    help: str
    names: tuple[str, ...]


def _option(panel: str | None, help: str, *names: str, commands: tuple[str, ...] = TRAIN) -> Option:
    return Option(panel, commands, help, names)


def _reading(commands: tuple[str, ...], help: str, *names: str) -> Option:
    return Option("Reading", commands, help, names)


_model, _evaluation = partial(_option, "Model"), partial(_option, "Evaluation")
_output, _cluster = partial(_option, "Output and checkpoints"), partial(_option, "Cluster")
_vw, _general = partial(_option, VW), partial(_option, None)

OPTIONS = {
    "loss": _model("logistic, hinge, softmax, squared, absolute, quantile (or quantile:0.9), poisson, …"),
    "algorithm": _model(
        "proximal (FTRL-Proximal), centered (dual averaging), mirror (gradient descent), or filter "
        "(Gaussian; --alpha is the prior variance).",
    ),
    "alpha": _model(
        "Scale of the learning rate, to train one model; by default, experts with several rates are mixed.",
    ),
    "beta": _model("Damping of the first steps; 1 with --alpha."),
    "rate": _model("Learning rate: adagrad (with --alpha) or scale_free (mixed)."),
    "l1": _model("Weight of the L1 penalty; 0 with --alpha, otherwise that of each expert."),
    "l2": _model("Weight of the L2 penalty."),
    "penalty_weight": _model("Add penalties once, or in every round."),
    "radius": _model("Largest absolute weight."),
    "no_bias": _model("Leave out the constant feature.", "--no-bias"),
    "seed": _model("Seed of --shuffle and stochastic rounding."),
    "lanes": _model("Mix a grid of this many FTRL settings, without filters."),
    "share": _model(
        "For drifting streams: fraction of the mixture weights to share among settings after each row, such as 0.001.",
    ),
    "shuffle": _model("Learn from the rows in random order; needs a temporary file.", "--shuffle"),
    "by": _model("Train a model for each value of this column; in VW text, of a namespace."),
    "fallback": _model("With --by, also train a model on all rows, for other values.", "--fallback"),
    "passes": _model("Number of passes over the data."),
    "holdout": _evaluation("Hold out every n-th row: predict it, do not learn from it. 0 for none."),
    "holdout_after": _evaluation("Hold out all rows after the first n."),
    "certificate": _evaluation("Bound how much better any fixed model could be.", "--certificate"),
    "report": _evaluation("Write a report with plots, in HTML."),
    "model": _output("Write the model to this file.", "--model", "-f"),
    "best": _output("Write only the model of the best setting.", "--best"),
    "serving": _output(
        "Write a small model, for predictions only: the best setting, or a mixture that has 1 % less loss.",
        "--serving",
    ),
    "predictions": _output("Write the predictions before learning (progressive) to this file.", "--predictions", "-p"),
    "link": _output("Scale of --predictions: auto, identity, logistic or glf1; see forel predict."),
    "start": _output("Continue training this model, with its settings.", "--start", "-i"),
    "checkpoint": _output("Write MODEL.checkpoint every n rows."),
    "resume": _output(
        "Resume from MODEL.checkpoint if it exists; the model has the same bytes as without interruption.",
        "--resume",
    ),
    "cache": _output("Keep parsed rows in this file, for later passes and runs.", "--keep-cache"),
    "ray": _cluster("Read files on a Ray cluster: its address, or local to start Ray here. The model is the same."),
    "workers": _cluster("Number of parallel readers of --ray; all CPUs but one by default."),
    "quiet": _general("Show no progress.", "--quiet"),
    "test": _vw("Evaluate the model of -i without learning.", "-t", "--testonly"),
    "holdout_off": _vw("Hold out nothing, the default.", "--holdout_off"),
    "ftrl": _vw("Always on; with --alpha, learn as VW does.", "--ftrl", "--save_resume"),
    "ftrl_alpha": _vw("VW's name of --alpha.", "--ftrl_alpha"),
    "ftrl_beta": _vw("VW's name of --beta.", "--ftrl_beta"),
    "oaa": _vw("VW's name of --classes, with a number."),
    "loss_function": _vw("VW's name of --loss; its squared loss is (p − y)², twice forel's.", "--loss_function"),
    "quantile_tau": _vw("0.9 is --loss quantile:0.9.", "--quantile_tau"),
    "bits": _reading(TRAIN, "Hash names to 2**bits slots; 22 by default.", "--bits", "-b"),
    "names": _reading(TRAIN, "Keep the names of features; reading is slower.", "--names"),
    "format": _reading(
        ALL,
        "vw, svmlight, csv, tsv, jsonl, parquet, arrow; auto detects it from names and first bytes.",
    ),
    "encoding": _reading(ALL, "Encoding of text, such as latin-1; UTF-8, or by a byte order mark, by default."),
    "label": _reading(ALL, "Column of labels."),
    "positive": _reading(LABELLED, "Label of the positive class, such as yes; all other labels are negative."),
    "classes": _reading(
        TRAIN,
        "Multiclass labels: the number of classes, their names separated by commas, or auto to detect them in the "
        "first 10,000 rows. More than two words as labels are always classes.",
    ),
    "importance": _reading(TRAIN, "Column of importance weights."),
    "keep": _reading(TRAIN, "Use only these columns, or VW namespaces by first letter; repeatable."),
    "ignore": _reading(TRAIN, "Columns, or VW namespaces by first letter, to ignore; repeatable."),
    "categories": _reading(TRAIN, "Columns whose numbers are categories; repeatable."),
    "log": _reading(TRAIN, "Columns to replace by their logarithms; repeatable."),
    "bucket": _reading(TRAIN, "Columns to bin into categories, one bin per doubling, four with price:4; repeatable."),
    "text": _reading(TRAIN, "Text columns, whose words are features; repeatable."),
    "ngram": _reading(TRAIN, "Text columns: n-grams of up to n words."),
    "char_ngram": _reading(TRAIN, "Text columns: lengths of character n-grams, such as 3-5."),
    "date": _reading(
        TRAIN,
        "Date columns: features for hour, weekday, month and the date itself; when:dmy or when:mdy for 31/01/2024 "
        "or 01/31/2024; repeatable.",
    ),
    "interactions": _reading(
        TRAIN,
        "Crossed features: ab, abc or :: by first letters of namespaces, city*device by name; repeatable.",
        "--interactions",
        "-q",
    ),
    "slices": _reading(
        MEASURE,
        "Show metrics by the values of these columns, or of namespaces or tag in VW text; repeatable.",
        "--slice",
    ),
    "separator": _reading(ALL, "Separator: comma, semicolon, tab, pipe or any character; detected by default."),
    "header": _reading(
        ALL,
        "Whether the first row has column names; otherwise they are c1, c2, ...",
        "--header/--no-header",
    ),
    "missing": _reading(
        ALL,
        "Missing-value markers in all columns, such as unknown,-999; repeatable. NA, NaN, null, ? and similar "
        "words are missing in numeric columns.",
    ),
    "decimal": _reading(ALL, "Decimal mark: . or ,"),
    "strict": _reading(
        SCORE,
        "Reject rows that differ from the training data: missing or new columns, words in place of numbers, "
        "numbers out of range. By default, they cause a warning.",
        "--strict",
    ),
    "on_error": _reading(READ, "Malformed rows: raise (an error), or skip (and count them)."),
    "line_limit": _reading(READ, "Maximum length of a line in bytes; 64 MB by default, 4 MB for JSON."),
}


@dataclass(frozen=True)
class ReadingFlags:
    """The flags of reading, by the names of :class:`forel.data.ReadOptions`; None if they are not given.

    >>> ReadingFlags(ignore=["id,day", '"a, b"'], separator="tab").options()
    {'ignore': ['id', 'day', 'a, b'], 'separator': '\\t'}
    """

    bits: int | None = None
    names: bool = False
    format: str = "auto"
    encoding: str | None = None
    label: str | None = None
    positive: str | None = None
    classes: str | None = None
    importance: str | None = None
    keep: list[str] | None = None
    ignore: list[str] | None = None
    categories: list[str] | None = None
    log: list[str] | None = None
    bucket: list[str] | None = None
    text: list[str] | None = None
    ngram: int | None = None
    char_ngram: str | None = None
    date: list[str] | None = None
    interactions: list[str] | None = None
    slices: list[str] | None = None
    separator: str | None = None
    header: bool | None = None
    missing: list[str] | None = None
    decimal: str | None = None
    strict: bool = False
    on_error: str = "raise"
    line_limit: int | None = None

    def options(self) -> dict[str, Any]:
        """Return the flags that differ from their defaults, as keywords of :func:`forel.data.read`."""
        chosen: dict[str, Any] = {}
        for flag in fields(self):
            value = getattr(self, flag.name)
            if value not in (flag.default, []):
                chosen[flag.name] = _split_all(value) if isinstance(value, list) else value
        if "classes" in chosen:
            chosen["classes"] = parse_classes(chosen["classes"])
        if "separator" in chosen:
            chosen["separator"] = SEPARATORS.get(chosen["separator"], chosen["separator"])
        return chosen

    def taken_by(self, command: str) -> "ReadingFlags":
        """Return the flags that a command takes, and the defaults of the others."""
        names = [flag.name for flag in fields(self) if command in OPTIONS[flag.name].commands]
        return ReadingFlags(**{name: getattr(self, name) for name in names})


NO_FLAGS = ReadingFlags()


def parse_classes(value: str) -> int | str | list[str]:
    """Return a number of classes, names separated by commas, or "auto".

    >>> parse_classes("3"), parse_classes("red,green"), parse_classes("auto")
    (3, ['red', 'green'], 'auto')
    """
    return int(value) if value.isdecimal() else value if value == "auto" else split_list(value)


def split_list(value: str) -> list[str]:
    """Split a list at its commas; an item with a comma is quoted.

    >>> split_list('id,"city, country"')
    ['id', 'city, country']
    """
    return [one for one in next(csv.reader([value], skipinitialspace=True), []) if one]


def _split_all(values: list[str]) -> list[str]:
    return [item for value in values for item in split_list(value)]


@dataclass(frozen=True)
class TrainOptions:
    """The values of all options of ``forel train``; None for options that were not given."""

    files: Files = None
    loss: str = "logistic"
    algorithm: str = "proximal"
    alpha: float | None = None
    beta: float | None = None
    rate: str | None = None
    l1: float | None = None
    l2: float = 0.0
    penalty_weight: str = "once"
    radius: float | None = None
    no_bias: bool = False
    seed: int = 0
    lanes: int | None = None
    share: float | None = None
    shuffle: bool = False
    by: str | None = None
    fallback: bool = False
    passes: int = 1
    holdout: int = 0
    holdout_after: int | None = None
    certificate: bool = False
    report: str | None = None
    model: str | None = None
    best: bool = False
    serving: bool = False
    predictions: str | None = None
    link: str = "auto"
    start: str | None = None
    checkpoint: int | None = None
    resume: bool = False
    cache: str | None = None
    reading: ReadingFlags = NO_FLAGS
    threads: Threads = None
    ray: str | None = None
    workers: int | None = None
    quiet: bool = False
    as_json: AsJson = False
    data: Data = None
    test: bool = False
    holdout_off: bool = False
    ftrl: bool = False
    ftrl_alpha: float | None = None
    ftrl_beta: float | None = None
    oaa: int | None = None
    loss_function: str | None = None
    quantile_tau: float | None = None


def source_of(files: list[str] | None, data: list[str] | None) -> list[str]:
    """Return the files given as arguments or with -d, or standard input, which a terminal has to be asked for."""
    found = [*(files or ()), *(data or ())]
    if sys.stdin is not None and sys.stdin.isatty():
        if not found:
            raise typer.BadParameter("none; name files, or - for standard input", param_hint="files")
        if "-" in found:
            say("forel: reading rows from this terminal until Ctrl-D")
    return found or ["-"]


def load_one(path: str, key: str | None) -> "Model":
    """Return the model of a file, or that of one key; raise if there is one for each key and none is given."""
    from forel.learner.keyed import KeyedModels
    from forel.training.model import load
    from forel.validation import refuse

    stored = load(path)
    if key is not None:
        return stored.of_key(key)
    if isinstance(stored.learner, KeyedModels):
        expected = f"the model of one key, such as --key {shlex.quote(stored.learner.keys[0])}"
        raise refuse("model", f"models by {stored.learner.by}", expected)
    return stored
