"""Options that several commands take, and those of training, as dataclasses whose docstrings are their help."""

import csv
import shlex
import sys
from contextlib import suppress
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import typer

from forel.cli.printing import say

if TYPE_CHECKING:
    from forel.training.model import Model

__all__ = ["FLAGS", "ReadingFlags", "TrainOptions", "check_files", "load_one", "parse_settings", "source_of"]

SEPARATORS = {"comma": ",", "semicolon": ";", "tab": "\t", "\\t": "\t", "pipe": "|", "space": " "}
# The flags of reading that each command takes; models keep the others.
CELLS = ("label", "format", "encoding", "separator", "header", "missing", "decimal")
MEANING = (
    "positive", "classes", "importance", "keep", "ignore", "categories", "text", "date", "bits", "names", "log",
    "ngram", "char_ngram", "interactions",
)  # fmt: skip
VOWPAL = ("threads", "data")
MEASURED = (*CELLS, "positive", "slices", "strict", "on_error", "line_limit")
FLAGS = {
    "train": (*CELLS, *MEANING, "slices", "on_error", "line_limit", "follow", "idle", *VOWPAL),
    "serve": MEANING,
    "evaluate": (*MEASURED, *VOWPAL),
    "compare": (*MEASURED, "importance", "ignore", "threads"),
    "predict": (*CELLS, "strict", "on_error", "line_limit", *VOWPAL),
    "explain": (*CELLS, "on_error", "line_limit", "data"),
    "peek": CELLS,
}


@dataclass(frozen=True)
class ReadingFlags:
    """The flags of reading, by the names of :class:`forel.data.ReadOptions`; None if they are not given.

    >>> ReadingFlags(ignore=["id,day", '"a, b"'], separator="tab").options()
    {'ignore': ['id', 'day', 'a, b'], 'separator': '\\t'}

    Reading
    -------
    label : Column of labels.
    positive : Label of the positive class, such as yes; all others are negative.
    classes : auto, a number of classes, or their names; auto detects them in the first 10,000 rows, commas separate
        names, and more than two words as labels are always classes.
    format : vw, svmlight, csv, tsv, jsonl, parquet, arrow; auto detects it from names and first bytes.
    ignore : Columns to ignore; VW namespaces by first letter; repeatable.
    categories : Columns whose numbers are categories; repeatable.
    text : Text columns, whose words are features; repeatable.
    date : Date columns; features for hour, weekday, month and the date itself; when:dmy or when:mdy for 31/01/2024 or
        01/31/2024; repeatable.
    bits (-b) : Hash names to 2**bits slots; 22 by default.
    names (--names/--no-names) : Keep the names of features; tables of up to 64 MB keep them by default.

    More on reading
    ---------------
    importance : Column of importance weights.
    keep : Use only these columns; VW namespaces by first letter; repeatable.
    encoding : Encoding of text, such as latin-1; UTF-8, or by a byte order mark, by default.
    log : Columns to replace by their logarithms; repeatable.
    ngram : Text columns: n-grams of up to n words.
    char_ngram : Text columns: lengths of character n-grams, such as 3-5.
    interactions (-q) : Crossed features: ab, abc or :: by first letters of namespaces, city*device by name; repeatable.
    slices (--slice) : Metrics by the values of these columns; also of namespaces or tag in VW text; repeatable.
    separator : Separator: comma, semicolon, tab, pipe or any character; detected by default.
    header (--header/--no-header) : Whether the first row has column names; otherwise they are c1, c2, ...
    missing : Missing-value markers in all columns, such as unknown,-999; repeatable. NA, NaN, null, ? and similar words
        are missing in numeric columns.
    decimal : Decimal mark: . or ,
    strict : Reject rows that differ from the training data: missing or new columns, words in place of numbers, numbers
        out of range. By default, they cause a warning.
    on_error : Malformed rows: raise (an error), or skip (and count them).
    line_limit : Maximum length of a line in bytes; 64 MB by default, 4 MB for JSON.
    follow : Go on with the lines that are appended to the file, as tail -f does, until Ctrl-C.
    idle : With --follow, end after so many seconds without a line.
    threads : Number of parser threads; results do not depend on it.

    More for Vowpal Wabbit users
    ----------------------------
    data (-d, --data) : A file, as an argument without -d; repeatable.
    """

    label: str | None = None
    positive: str | None = None
    classes: str | None = None
    importance: str | None = None
    format: str = "auto"
    keep: list[str] | None = None
    ignore: list[str] | None = None
    categories: list[str] | None = None
    text: list[str] | None = None
    date: list[str] | None = None
    bits: int | None = None
    names: bool | None = None
    encoding: str | None = None
    log: list[str] | None = None
    ngram: int | None = None
    char_ngram: str | None = None
    interactions: list[str] | None = None
    slices: list[str] | None = None
    separator: str | None = None
    header: bool | None = None
    missing: list[str] | None = None
    decimal: str | None = None
    strict: bool = False
    on_error: str = "raise"
    line_limit: int | None = None
    follow: bool = False
    idle: float | None = None
    threads: int | None = None
    data: list[str] | None = None

    def options(self) -> dict[str, Any]:
        """Return the flags that differ from their defaults, as keywords of :func:`forel.data.read`."""
        chosen: dict[str, Any] = {}
        for flag in fields(self):
            value = getattr(self, flag.name)
            if flag.name != "data" and value not in (flag.default, []):
                chosen[flag.name] = _split_all(value) if isinstance(value, list) else value
        if "classes" in chosen:
            chosen["classes"] = parse_classes(chosen["classes"])
        if "separator" in chosen:
            chosen["separator"] = SEPARATORS.get(chosen["separator"], chosen["separator"])
        return chosen


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
    """The values of the options of ``forel train`` that are not about reading; None for options that were not given.

    Arguments
    ---------
    files : Files, patterns, or - for standard input.

    Model
    -----
    loss : logistic, squared, softmax, poisson or another; also hinge, absolute, quantile and quantile:0.9.
    alpha : Learning rate of one model; by default, experts with several are mixed.
    passes : Number of passes over the data.
    shuffle : Random order of rows; needs a temporary file.

    Evaluation
    ----------
    holdout : Hold out every n-th row; it is predicted, not learned from.
    holdout_after : Hold out all rows after the first n.
    certificate : Bound how much better a fixed model could be.
    report : Write a report with plots, in HTML.

    Output
    ------
    model (-f) : Write the model to this file.
    predictions (-p) : Write the predictions before learning; they are progressive.
    start (-i) : Continue training this model; its settings stay.
    checkpoint : Write MODEL.checkpoint every n rows.
    resume : Resume from MODEL.checkpoint; the model has the same bytes as without interruption.

    More on model
    -------------
    by : Train a model for each value of this column; in VW text, of a namespace.
    algorithm : proximal (FTRL-Proximal), centered (dual averaging), mirror (gradient descent), or filter (Gaussian;
        --alpha is the prior variance).
    beta : Damping of the first steps; 1 with --alpha.
    rate : Learning rate: adagrad (with --alpha) or scale_free (mixed).
    l1 : Weight of the L1 penalty; 0 with --alpha, otherwise that of each expert.
    l2 : Weight of the L2 penalty.
    penalty_weight : Add penalties once, or in every round.
    radius : Largest absolute weight.
    no_bias : Leave out the constant feature.
    seed : Seed of --shuffle and stochastic rounding.
    lanes : Mix a grid of this many FTRL settings, without filters.
    share : For drifting streams: fraction of the mixture weights to share among settings after each row, such as 0.001.
    fallback : With --by, also train a model on all rows, for other values.
    features : What experts learn: linear, curves (piecewise-linear, of columns), pairs (also products of two), or auto.
    class_weight : balanced: rare classes count as much as common ones.

    More on evaluation
    ------------------
    interval : Keep intervals that cover this fraction of predicted numbers, such as 0.9.

    More on output
    --------------
    best : Write only the model of the best setting; experts on curves or with all covariances are not among them.
    serving : Write a small model, for predictions only: the best setting, or a mixture that has 1 % less loss.
    link : Scale of --predictions: auto, identity, logistic or glf1; see forel predict.

    More on cluster
    ---------------
    ray : Read files on a Ray cluster: its address, or local to start Ray here. The model is the same.
    workers : Number of parallel readers of --ray; all CPUs but one by default.

    Options
    -------
    quiet : Show no progress.
    as_json (--json) : Print JSON instead of text.

    More for Vowpal Wabbit users
    ----------------------------
    holdout_off (--holdout_off) : Hold out nothing, the default.
    ftrl (--ftrl, --save_resume) : Always on; with --alpha, learn as VW does.
    ftrl_alpha (--ftrl_alpha) : VW's name of --alpha.
    ftrl_beta (--ftrl_beta) : VW's name of --beta.
    loss_function (--loss_function) : VW's name of --loss; its squared loss is (p − y)², twice forel's.
    quantile_tau (--quantile_tau) : 0.9 is --loss quantile:0.9.
    """

    files: list[str] | None = None
    reading: ReadingFlags = NO_FLAGS
    loss: str = "logistic"
    alpha: float | None = None
    passes: int = 1
    shuffle: bool = False
    by: str | None = None
    algorithm: str = "proximal"
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
    fallback: bool = False
    features: str = "auto"
    class_weight: str | None = None
    holdout: int = 0
    holdout_after: int | None = None
    certificate: bool = False
    report: str | None = None
    interval: float | None = None
    model: str | None = None
    predictions: str | None = None
    start: str | None = None
    checkpoint: int | None = None
    resume: bool = False
    best: bool = False
    serving: bool = False
    link: str = "auto"
    ray: str | None = None
    workers: int | None = None
    quiet: bool = False
    as_json: bool = False
    holdout_off: bool = False
    ftrl: bool = False
    ftrl_alpha: float | None = None
    ftrl_beta: float | None = None
    loss_function: str | None = None
    quantile_tau: float | None = None


def source_of(files: list[str] | None, reading: ReadingFlags) -> list[str]:
    """Return the files given as arguments or with -d, or standard input, which a terminal has to be asked for."""
    found = [*(files or ()), *(reading.data or ())]
    if sys.stdin is not None and sys.stdin.isatty():
        if not found:
            raise typer.BadParameter("none; name files, or - for standard input", param_hint="files")
        if "-" in found:
            say("forel: reading rows from this terminal until Ctrl-D")
    return found or ["-"]


def check_files(outputs: dict[str, str | None], source: list[str]) -> None:
    """Check that outputs can be written, before anything is read; predictions may also go to a pipe."""
    from forel.data.sources.files import single_sources
    from forel.store.atomic import check_outputs

    written = {name: path for name, path in outputs.items() if path != "-"}
    read: list[str] = []
    with suppress(OSError, ValueError):  # a missing source is an error when it is opened
        read = [one for one in single_sources(source) if one != "-"]
    check_outputs(written, streams=("--predictions", "--output"), sources=read)


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


def parse_settings(settings: list[str] | None) -> dict[str, Any]:
    """Return settings that are given as name=value; none for default.

    >>> parse_settings(["alpha=0.5", "l1=1"]), parse_settings(["default"])
    ({'alpha': 0.5, 'l1': 1}, {})
    """
    from forel.learner.settings import Settings

    known, given = {field.name for field in fields(Settings)}, dict[str, Any]()
    for one in settings or ():
        key, equals, value = one.partition("=")
        if one != "default" and (not equals or key not in known):
            expected = f"got {one!r}, expected name=value of a setting, such as alpha=0.5, or default"
            raise typer.BadParameter(expected, param_hint="settings")
        if equals:
            try:
                given[key] = float(value) if "." in value or "e" in value else int(value)
            except ValueError:
                given[key] = value
    return given
