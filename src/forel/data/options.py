"""Options of reading: one frozen dataclass for ``forel.read``, the command line, caches, checkpoints and models."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from difflib import get_close_matches
from enum import Flag, auto
from functools import cached_property
from typing import Any, Literal, TypedDict

from forel.data.block import MOST_BITS
from forel.data.features.crosses import CHUNK, Crosses, SeparateFeatures, parse_crosses
from forel.data.features.dates import parse_date_column
from forel.data.features.kinds import validate_kinds
from forel.data.features.names import Names
from forel.data.features.text import TextFeatures, parse_char_ngram
from forel.data.labels import validated_classes
from forel.data.sources.detect import FORMATS
from forel.data.sources.streams import LONGEST
from forel.validation import positive, refuse, repeated, several, whole

__all__ = [
    "BLOCK_BYTES", "COLUMNS", "LENIENT", "MEANING", "STORED", "OtherReadKeywords", "ReadKeywords", "ReadOptions",
    "Use",
]  # fmt: skip

OBJECTS = 16  # an object parsed from JSON takes about this many times the memory of its text
SEQUENCES = ("keep", "ignore", "categories", "log", "text", "date", "missing", "interactions", "slices")
BLOCK_BYTES = 1 << 21  # large enough to amortize the work per block, small enough for several blocks to fit in cache


class Use(Flag):
    """What depends on an option."""

    MEANING = auto()  # it decides what examples mean, so a cache of parsed rows has to be read with the same
    STORED = auto()  # a model keeps it, to read in the same way for predictions
    RESUME = auto()  # a resumed run has to repeat it, in addition to all of MEANING
    COLUMNS = auto()  # it names columns, which VW and svmlight text do not have
    LENIENT = auto()  # it decides what may be missing or odd


def _option(default: Any, json_type: Any, *uses: Use) -> Any:
    """Return a field with its default, its types in JSON, and what depends on it."""
    metadata = {"json": json_type, "uses": uses}
    if isinstance(default, dict):
        return field(default_factory=dict, metadata=metadata)
    return field(default=default, metadata=metadata)


@dataclass(frozen=True)
class ReadOptions:
    """How a source is read; :func:`forel.read` takes the same names as keywords.

    Options that take several columns take the name of one, too.

    Parameters
    ----------
    format : one of vw, svmlight, csv, tsv, jsonl, parquet, arrow; "auto" detects it from the name, then from the first
        bytes; a cache of parsed rows is detected in the same way as an Arrow file
    encoding : of text, such as "latin-1"; by default UTF-8, or UTF-16 or UTF-32 where a byte order mark tells it
    bits : names are hashed to 2**bits slots, at most 2**31; svmlight ids below that are used unchanged
    label, importance : columns or keys of labels and example weights
    positive : the label of the positive class, a word or a number; every other label is negative. By default,
        labels are numbers or two words, of which ``yes``, ``true``, ``spam`` and the like, or the last, is positive
    classes : labels are classes, words or numbers: the names of all, or their number, or "auto" to count those of the
        first 10,000 rows. By default, more than two words are classes, and numbers are not
    keep, ignore : columns or keys to use as features, or to leave out; for VW text, first letters of namespaces
    categories : columns or keys whose numbers are codes: each number is a category, like a string
    log : columns or keys whose numbers x are replaced by sign(x) log(1 + |x|)
    text : columns or keys whose words are features, as :class:`forel.data.features.text.TextFeatures` splits them
    ngram : of these columns, sequences of up to ``ngram`` words
    char_ngram : of these columns, sequences of characters within words, such as "3-5"
    date : columns or keys of dates and times, as :func:`forel.data.features.dates.date_features` reads them;
        ``when:dmy`` reads 31/01/2024, and ``when:mdy`` 01/31/2024
    separator : the byte between cells of CSV; None recognizes a comma, tab, semicolon or pipe in the first lines
    header : whether the first row of delimited text has the names of columns; if not, they are c1, c2, ...
    missing : marks of missing values in all columns of delimited text, in addition to empty cells; numeric columns
        also have ``NA``, ``N/A``, ``NULL``, ``null``, ``None``, ``nan``, ``NaN`` and ``?``
    decimal : the decimal mark of numbers in delimited text, "." or ","
    interactions : crosses, as :func:`forel.data.features.crosses.parse_crosses` takes them: ``"ab"`` for pairs of
        features of namespaces that begin with a and with b, ``"city*device"`` for columns by name, or three of these
    constant : whether each example gets the feature ``Constant``, which is penalized like others and not crossed
    kinds : kinds of columns, as ``Reader.kinds.known`` returns them after reading: "number", "category", or "either",
        which depends on the value. The first value of any other text column decides its kind
    unlabelled : whether the columns of label and importance may be missing from a table
    unweighted : whether the column of importance may be missing; weights are then 1
    strict : whether text in a numeric column is malformed; if not, it is a category of that column
    tags : whether to keep the tags of VW examples
    slices : columns or keys whose values ``Block.slices`` has; in VW text, namespaces, of which the first feature
        counts, or ``tag``
    names : whether to record the first name hashed to each slot, of at most 2**31
    columns : whether blocks have the column of each entry, where rows have columns that are not crossed
    entry_names : whether to keep every feature separate, with its namespace and name, in blocks that are not learned
        from; names of svmlight features are their ids
    on_error : "raise", or "skip" to leave out malformed examples and count them in ``problems``
    block_bytes : approximate number of bytes per block
    line_limit : length in bytes above which a line or header is refused, because the file may not be text; None for
        64 MB, and 4 MB for JSON lines, whose objects take more memory than their text
    follow : at the end of a file of lines, or of a pipe, wait for more, until the process is interrupted by SIGINT or
        SIGTERM; lines that are there already are read then
    idle : with ``follow``, seconds without a line after which it ends, too

    >>> options = ReadOptions(label="click", ignore=["id"])
    >>> options.stored
    {'bits': 22, 'label': 'click', 'ignore': ['id']}
    >>> ReadOptions.from_json(options.stored) == options
    True
    """

    format: str = _option("auto", str, Use.MEANING)
    encoding: str | None = _option(None, str, Use.MEANING, Use.STORED)
    bits: int = _option(22, int, Use.MEANING, Use.STORED)
    label: str | None = _option(None, str, Use.MEANING, Use.STORED, Use.COLUMNS)
    importance: str | None = _option(None, str, Use.MEANING, Use.STORED, Use.COLUMNS)
    positive: str | None = _option(None, str, Use.MEANING, Use.STORED, Use.COLUMNS)
    classes: int | Literal["auto"] | tuple[str, ...] | None = _option(None, (int, str, list), Use.MEANING, Use.STORED)
    keep: tuple[str, ...] | None = _option(None, list, Use.MEANING, Use.STORED, Use.COLUMNS)
    ignore: tuple[str, ...] = _option((), list, Use.MEANING, Use.STORED, Use.COLUMNS)
    categories: tuple[str, ...] = _option((), list, Use.MEANING, Use.STORED, Use.COLUMNS)
    log: tuple[str, ...] = _option((), list, Use.MEANING, Use.STORED, Use.COLUMNS)
    text: tuple[str, ...] = _option((), list, Use.MEANING, Use.STORED, Use.COLUMNS)
    ngram: int = _option(1, int, Use.MEANING, Use.STORED, Use.COLUMNS)
    date: tuple[str, ...] = _option((), list, Use.MEANING, Use.STORED, Use.COLUMNS)
    char_ngram: str | None = _option(None, str, Use.MEANING, Use.STORED, Use.COLUMNS)
    separator: str | None = _option(None, str, Use.MEANING, Use.STORED, Use.COLUMNS)
    header: bool = _option(True, bool, Use.MEANING, Use.STORED, Use.COLUMNS)
    missing: tuple[str, ...] = _option((), list, Use.MEANING, Use.STORED, Use.COLUMNS)
    decimal: str = _option(".", str, Use.MEANING, Use.STORED, Use.COLUMNS)
    interactions: tuple[Any, ...] = _option((), list, Use.MEANING, Use.STORED)
    # Added after a cache is read, so that models with and without it share the cache.
    constant: bool = _option(False, bool, Use.STORED, Use.RESUME)
    kinds: Mapping[str, str] = _option({}, dict, Use.MEANING, Use.STORED)
    unlabelled: bool = _option(False, bool, Use.LENIENT)
    unweighted: bool = _option(False, bool, Use.LENIENT)
    strict: bool = _option(True, bool, Use.LENIENT)
    tags: bool = _option(False, bool)
    slices: tuple[str, ...] = _option((), list, Use.RESUME)
    columns: bool = _option(False, bool, Use.MEANING)
    names: bool = _option(False, bool, Use.RESUME)
    entry_names: bool = _option(False, bool)
    on_error: Literal["raise", "skip"] = _option("raise", str, Use.RESUME)
    block_bytes: int = _option(BLOCK_BYTES, int, Use.RESUME)
    line_limit: int | None = _option(None, int)
    follow: bool = _option(False, bool)
    idle: float | None = _option(None, (int, float))

    def __post_init__(self) -> None:
        for name in SEQUENCES:
            value = getattr(self, name)
            object.__setattr__(self, name, None if value is None else several(value))
        for name in ("label", "importance"):
            if not isinstance(given := getattr(self, name), str | None):
                raise refuse(name, given, "the name of a column, which is text; values come with X, as (X, y)")
        object.__setattr__(self, "kinds", validate_kinds(self.kinds))
        if self.encoding is not None:
            try:
                "".encode(self.encoding)
            except (LookupError, TypeError):
                raise refuse("encoding", self.encoding, "that of text, such as 'latin-1' or 'cp1252'") from None
        if self.on_error not in ("raise", "skip"):
            raise refuse("on_error", self.on_error, "'raise' or 'skip'")
        object.__setattr__(self, "classes", validated_classes(self.classes))
        if self.classes is not None and self.positive is not None:
            raise refuse("positive", self.positive, "None where labels have several classes")
        self._check_text()
        dates = [parse_date_column(one)[0] for one in self.date]
        twice = repeated((*self.categories, *self.log, *self.text, *dates))
        if twice is not None:
            raise refuse("categories, log, text, date", twice, "one of these for a column")
        for name, usual in (("ngram", 1), ("char_ngram", None)):
            if not self.text and (given := getattr(self, name)) != usual:
                raise refuse(name, given, "none without text (--text), which names columns")
        if self.text:
            _ = self.text_features  # which validates them
        what = "interactions" if self.interactions else "entry_names"
        if getattr(self, what) and (self.text or self.date):
            raise refuse(what, getattr(self, what), "none with text or dates, which are not crossed")
        crossed = self.transform is not None and not isinstance(self.transform, SeparateFeatures)
        if self.entry_names and (crossed or self.names or self.constant):
            raise refuse("entry_names", self.entry_names, "False with interactions, names or a constant")
        if self.format != "auto" and self.format not in FORMATS:
            raise refuse("format", self.format, f"auto or one of {', '.join(FORMATS)}")
        if not 1 <= whole("bits", self.bits, low=1) <= MOST_BITS:
            raise refuse("bits", self.bits, f"1 to {MOST_BITS}")
        if whole("block_bytes", self.block_bytes, low=1) > 1 << 30:
            raise refuse("block_bytes", self.block_bytes, "1 to 2**30")
        # Compiled code counts the entries of a chunk in 32 bits.
        if self.line_limit is not None and whole("line_limit", self.line_limit, low=1) > 1 << 30:
            raise refuse("line_limit", self.line_limit, "1 to 2**30")
        if self.follow and self.encoding is not None:
            raise refuse("follow", True, "False with an encoding; lines are UTF-8")
        if self.idle is not None:
            if not self.follow:
                raise refuse("idle", self.idle, "None without follow (--follow)")
            positive("idle", self.idle)

    def _check_text(self) -> None:
        """Raise if the marks of delimited text are ambiguous."""
        separator = self.separator
        if separator is not None and (len(separator) != 1 or not separator.isascii() or separator in '"\n\r'):
            raise refuse("separator", separator, "one ASCII character, such as ';', '|' or a tab")
        if self.decimal not in (".", ","):
            raise refuse("decimal", self.decimal, "'.' or ','")
        if not all(isinstance(mark, str) and mark.strip() for mark in self.missing):
            raise refuse("missing", self.missing, "words; empty cells are missing in any case")

    @cached_property
    def dates(self) -> dict[str, str]:
        """The columns of dates, with the order of day, month and year, or ""."""
        return dict(map(parse_date_column, self.date))

    @cached_property
    def text_features(self) -> TextFeatures:
        """How text columns are split."""
        return TextFeatures(self.ngram, parse_char_ngram(self.char_ngram))

    @cached_property
    def transform(self) -> Crosses | None:
        """The transformation of features before those of a slot are summed: crosses, or none."""
        if self.interactions:
            return parse_crosses(self.interactions)
        return SeparateFeatures() if self.entry_names else None

    @property
    def chunk_bytes(self) -> int:
        """The approximate number of bytes of text per block, fewer with crosses, which multiply its size."""
        return self.block_bytes if self.transform is None else min(self.block_bytes, CHUNK)

    def longest_line(self, form: str) -> int:
        """Return the maximum number of bytes of a line in a format."""
        if self.line_limit is not None:
            return self.line_limit
        return LONGEST // OBJECTS if form == "jsonl" else LONGEST

    def updated(self, keywords: Mapping[str, Any]) -> "ReadOptions":
        """Return a copy with some options changed; None leaves an option unchanged.

        >>> ReadOptions().updated({"lable": "click"})
        Traceback (most recent call last):
        TypeError: 'lable' is not a read option; did you mean 'label'?
        """
        options = [field.name for field in fields(self)]
        for name in keywords.keys() - set(options):
            similar = get_close_matches(name, options, 1)
            hint = f"did you mean {similar[0]!r}?" if similar else f"they are {', '.join(options)}"
            raise TypeError(f"{name!r} is not a read option; {hint}")
        chosen = {name: value for name, value in keywords.items() if value is not None}
        if "names" in chosen:
            chosen["names"] = isinstance(chosen["names"], Names) or bool(chosen["names"])
        return replace(self, **chosen) if chosen else self

    def to_json(self, names: Iterable[str] | None = None) -> dict[str, Any]:
        """Return the named options, or all, as JSON values."""
        chosen = [one.name for one in fields(self)] if names is None else names
        values: dict[str, Any] = json.loads(json.dumps({name: getattr(self, name) for name in chosen}))
        return values

    @classmethod
    def from_json(cls, values: Any, owner: str = "options") -> "ReadOptions":
        """Return the options that JSON values describe, with defaults for missing ones.

        Parameters
        ----------
        values : as :meth:`to_json` returns them, or some of them
        owner : what stores them, for errors
        """
        if not isinstance(values, dict):
            raise refuse(owner, values, "reading options by name")
        known = {one.name: one.metadata["json"] for one in fields(cls)}
        chosen = {name: value for name, value in values.items() if value is not None}
        for name, value in chosen.items():
            if name not in known:
                raise ValueError(
                    f"{owner}: got reading option {name}={value!r}, expected one of this version; update forel"
                )
            if not isinstance(value, known[name]):
                raise ValueError(f"{owner}: got reading option {name}={value!r}, expected a value of its type")
        return cls(**chosen)

    @property
    def stored(self) -> dict[str, Any]:
        """The options that a model keeps, as JSON: ``bits``, and those that differ from their defaults."""
        usual = ReadOptions().to_json(STORED)
        return {name: v for name, v in self.to_json(STORED).items() if name == "bits" or v != usual[name]}

    @property
    def meaning(self) -> dict[str, Any]:
        """The options that decide what examples mean, as JSON."""
        return self.to_json(MEANING)

    @property
    def resume_key(self) -> dict[str, Any]:
        """The options that a resumed run has to repeat, as JSON."""
        return {**self.meaning, **self.to_json(RESUME)}


def _with(use: Use) -> tuple[str, ...]:
    return tuple(one.name for one in fields(ReadOptions) if use in one.metadata["uses"])


MEANING, STORED, RESUME, COLUMNS, LENIENT = map(_with, (Use.MEANING, Use.STORED, Use.RESUME, Use.COLUMNS, Use.LENIENT))


class OtherReadKeywords(TypedDict, total=False):
    """The options that are not among the typed parameters of ``forel.train``, as keywords for type checkers."""

    encoding: str | None
    positive: str | None
    categories: Iterable[str] | None
    log: Iterable[str] | None
    ngram: int | None
    char_ngram: str | None
    date: Iterable[str] | None
    separator: str | None
    header: bool | None
    missing: Iterable[str] | None
    decimal: str | None
    constant: bool | None
    kinds: Mapping[str, str] | None
    unlabelled: bool | None
    unweighted: bool | None
    strict: bool | None
    tags: bool | None
    slices: Iterable[str] | None
    columns: bool | None
    entry_names: bool | None
    on_error: Literal["raise", "skip"] | None
    block_bytes: int | None
    line_limit: int | None
    follow: bool | None
    idle: float | None


class ReadKeywords(OtherReadKeywords, total=False):
    """The options as keywords, for type checkers: sequences may be any iterables, and ``names`` a ``Names``."""

    bits: int | None
    label: str | None
    importance: str | None
    classes: int | str | Iterable[str] | None
    keep: Iterable[str] | None
    ignore: Iterable[str] | None
    text: Iterable[str] | None
    interactions: Iterable[Any] | None
    names: bool | Names | None
