"""Options of commands.

Those of training and reading are fields of dataclasses, with their help. ``commands.expand_flags`` replaces a
command's parameter ``reading``, of the type :class:`ReadingFlags`, by the flags of reading that the command takes.
"""

import csv
import shlex
import sys
from dataclasses import Field, dataclass, field, fields
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from forel.cli.printing import say

if TYPE_CHECKING:
    from forel.training.model import Model

__all__ = [
    "COMMON_OPTIONS",
    "NO_FLAGS",
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
    "option_of",
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
# The commands that take a flag; others have a constant FLAGS_OF, the command whose flags they take.
TRAIN = ("train", "serve")
LABELLED = ("train", "convert", "evaluate", "serve")
MEASURE = ("train", "evaluate")
SCORE = ("predict", "evaluate")
READ = ("train", "convert", "predict", "evaluate", "explain")
ALL = (*READ, "peek")
# What --help shows; --help-all shows all options.
COMMON_OPTIONS = frozenset(
    {
        *("files", "loss", "alpha", "l1", "passes", "shuffle", "share", "by", "quiet", "as_json"),
        *("holdout", "holdout_after", "interval", "certificate", "report", "model", "serving", "predictions", "start"),
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


def _option(panel: str | None, help: str, *names: str, commands: tuple[str, ...] = TRAIN, default: Any = None) -> Any:
    """Return the field of an option."""
    return field(default=default, metadata={"option": Option(panel, commands, help, names)})


def _reading(commands: tuple[str, ...], help: str, *names: str, default: Any = None) -> Any:
    return _option("Reading", help, *names, commands=commands, default=default)


def option_of(flag: Field[Any]) -> Option | None:
    """Return the option of a field; None for an argument, whose type has its help."""
    found: Option | None = flag.metadata.get("option")
    return found


_model, _evaluation = partial(_option, "Model"), partial(_option, "Evaluation")
_output, _cluster = partial(_option, "Output and checkpoints"), partial(_option, "Cluster")
_vw, _general = partial(_option, VW), partial(_option, None)


@dataclass(frozen=True)
class ReadingFlags:
    """The flags of reading, by the names of :class:`forel.data.ReadOptions`; None if they are not given.

    >>> ReadingFlags(ignore=["id,day", '"a, b"'], separator="tab").options()
    {'ignore': ['id', 'day', 'a, b'], 'separator': '\\t'}
    """

    bits: int | None = _reading(TRAIN, "Hash names to 2**bits slots; 22 by default.", "--bits", "-b")
    names: bool = _reading(TRAIN, "Keep the names of features; reading is slower.", "--names", default=False)
    format: str = _reading(
        ALL,
        "vw, svmlight, csv, tsv, jsonl, parquet, arrow; auto detects it from names and first bytes.",
        default="auto",
    )
    encoding: str | None = _reading(
        ALL, "Encoding of text, such as latin-1; UTF-8, or by a byte order mark, by default."
    )
    label: str | None = _reading(ALL, "Column of labels.")
    positive: str | None = _reading(
        LABELLED, "Label of the positive class, such as yes; all other labels are negative."
    )
    classes: str | None = _reading(
        TRAIN,
        "Multiclass labels: the number of classes, their names separated by commas, or auto to detect them in the "
        "first 10,000 rows. More than two words as labels are always classes.",
    )
    importance: str | None = _reading(TRAIN, "Column of importance weights.")
    keep: list[str] | None = _reading(TRAIN, "Use only these columns, or VW namespaces by first letter; repeatable.")
    ignore: list[str] | None = _reading(TRAIN, "Columns, or VW namespaces by first letter, to ignore; repeatable.")
    categories: list[str] | None = _reading(TRAIN, "Columns whose numbers are categories; repeatable.")
    log: list[str] | None = _reading(TRAIN, "Columns to replace by their logarithms; repeatable.")
    bucket: list[str] | None = _reading(
        TRAIN, "Columns to bin into categories, one bin per doubling, four with price:4; repeatable."
    )
    text: list[str] | None = _reading(TRAIN, "Text columns, whose words are features; repeatable.")
    ngram: int | None = _reading(TRAIN, "Text columns: n-grams of up to n words.")
    char_ngram: str | None = _reading(TRAIN, "Text columns: lengths of character n-grams, such as 3-5.")
    date: list[str] | None = _reading(
        TRAIN,
        "Date columns: features for hour, weekday, month and the date itself; when:dmy or when:mdy for 31/01/2024 "
        "or 01/31/2024; repeatable.",
    )
    interactions: list[str] | None = _reading(
        TRAIN,
        "Crossed features: ab, abc or :: by first letters of namespaces, city*device by name; repeatable.",
        "--interactions",
        "-q",
    )
    slices: list[str] | None = _reading(
        MEASURE,
        "Show metrics by the values of these columns, or of namespaces or tag in VW text; repeatable.",
        "--slice",
    )
    separator: str | None = _reading(
        ALL, "Separator: comma, semicolon, tab, pipe or any character; detected by default."
    )
    header: bool | None = _reading(
        ALL, "Whether the first row has column names; otherwise they are c1, c2, ...", "--header/--no-header"
    )
    missing: list[str] | None = _reading(
        ALL,
        "Missing-value markers in all columns, such as unknown,-999; repeatable. NA, NaN, null, ? and similar "
        "words are missing in numeric columns.",
    )
    decimal: str | None = _reading(ALL, "Decimal mark: . or ,")
    strict: bool = _reading(
        SCORE,
        "Reject rows that differ from the training data: missing or new columns, words in place of numbers, "
        "numbers out of range. By default, they cause a warning.",
        "--strict",
        default=False,
    )
    on_error: str = _reading(READ, "Malformed rows: raise (an error), or skip (and count them).", default="raise")
    line_limit: int | None = _reading(READ, "Maximum length of a line in bytes; 64 MB by default, 4 MB for JSON.")

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
        names = [flag.name for flag in fields(self) if command in flag.metadata["option"].commands]
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
    loss: str = _model(
        "logistic, hinge, softmax, squared, absolute, quantile (or quantile:0.9), poisson, …", default="logistic"
    )
    algorithm: str = _model(
        "proximal (FTRL-Proximal), centered (dual averaging), mirror (gradient descent), or filter "
        "(Gaussian; --alpha is the prior variance).",
        default="proximal",
    )
    alpha: float | None = _model(
        "Scale of the learning rate, to train one model; by default, experts with several rates are mixed."
    )
    beta: float | None = _model("Damping of the first steps; 1 with --alpha.")
    rate: str | None = _model("Learning rate: adagrad (with --alpha) or scale_free (mixed).")
    l1: float | None = _model("Weight of the L1 penalty; 0 with --alpha, otherwise that of each expert.")
    l2: float = _model("Weight of the L2 penalty.", default=0.0)
    penalty_weight: str = _model("Add penalties once, or in every round.", default="once")
    radius: float | None = _model("Largest absolute weight.")
    no_bias: bool = _model("Leave out the constant feature.", "--no-bias", default=False)
    seed: int = _model("Seed of --shuffle and stochastic rounding.", default=0)
    lanes: int | None = _model("Mix a grid of this many FTRL settings, without filters.")
    share: float | None = _model(
        "For drifting streams: fraction of the mixture weights to share among settings after each row, such as 0.001."
    )
    shuffle: bool = _model("Learn from the rows in random order; needs a temporary file.", "--shuffle", default=False)
    by: str | None = _model("Train a model for each value of this column; in VW text, of a namespace.")
    fallback: bool = _model("With --by, also train a model on all rows, for other values.", "--fallback", default=False)
    features: str = _model(
        "What experts learn: linear, curves (piecewise-linear, of columns), pairs (also products of two), or auto.",
        default="auto",
    )
    class_weight: str | None = _model("balanced: rare classes count as much as common ones.")
    passes: int = _model("Number of passes over the data.", default=1)
    holdout: int = _evaluation("Hold out every n-th row: predict it, do not learn from it. 0 for none.", default=0)
    holdout_after: int | None = _evaluation("Hold out all rows after the first n.")
    interval: float | None = _evaluation("Keep intervals that cover this fraction of predicted numbers, such as 0.9.")
    certificate: bool = _evaluation("Bound how much better any fixed model could be.", "--certificate", default=False)
    report: str | None = _evaluation("Write a report with plots, in HTML.")
    model: str | None = _output("Write the model to this file.", "--model", "-f")
    best: bool = _output("Write only the model of the best setting.", "--best", default=False)
    serving: bool = _output(
        "Write a small model, for predictions only: the best setting, or a mixture that has 1 % less loss.",
        "--serving",
        default=False,
    )
    predictions: str | None = _output(
        "Write the predictions before learning (progressive) to this file.", "--predictions", "-p"
    )
    link: str = _output("Scale of --predictions: auto, identity, logistic or glf1; see forel predict.", default="auto")
    start: str | None = _output("Continue training this model, with its settings.", "--start", "-i")
    checkpoint: int | None = _output("Write MODEL.checkpoint every n rows.")
    resume: bool = _output(
        "Resume from MODEL.checkpoint if it exists; the model has the same bytes as without interruption.",
        "--resume",
        default=False,
    )
    reading: ReadingFlags = NO_FLAGS
    threads: Threads = None
    ray: str | None = _cluster(
        "Read files on a Ray cluster: its address, or local to start Ray here. The model is the same."
    )
    workers: int | None = _cluster("Number of parallel readers of --ray; all CPUs but one by default.")
    quiet: bool = _general("Show no progress.", "--quiet", default=False)
    as_json: AsJson = False
    data: Data = None
    test: bool = _vw("Evaluate the model of -i without learning.", "-t", "--testonly", default=False)
    holdout_off: bool = _vw("Hold out nothing, the default.", "--holdout_off", default=False)
    ftrl: bool = _vw("Always on; with --alpha, learn as VW does.", "--ftrl", "--save_resume", default=False)
    ftrl_alpha: float | None = _vw("VW's name of --alpha.", "--ftrl_alpha")
    ftrl_beta: float | None = _vw("VW's name of --beta.", "--ftrl_beta")
    oaa: int | None = _vw("VW's name of --classes, with a number.")
    loss_function: str | None = _vw(
        "VW's name of --loss; its squared loss is (p − y)², twice forel's.", "--loss_function"
    )
    quantile_tau: float | None = _vw("0.9 is --loss quantile:0.9.", "--quantile_tau")


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
