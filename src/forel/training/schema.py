"""The schema of a model's training rows: kinds and ranges of columns, a sample, and how other rows differ from them."""

import difflib
import math
import warnings
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from forel.data import Block, Malformed, Problems, ReadOptions
from forel.data.block import take_rows
from forel.data.features.kinds import DATE, Kinds, sign_of
from forel.data.features.ranges import ColumnRanges, Outside
from forel.data.labels import CLASSES, LabelWords
from forel.training.passes import Passes
from forel.training.row_sample import ROWS, Reservoir, hashes_of
from forel.training.run import Transform
from forel.validation import refuse

__all__ = ["SchemaCheck", "SchemaOfRun"]

MIN_ROWS = 100  # without a header, a key counts as missing after this many rows without it
SHOWN = 5  # columns in a message
FEW, FEW_OF_ROWS = 3, 0.02  # values beyond the range of training, by less than half of its width


class SchemaOfRun(Transform):
    """The schema of the rows of a run's first pass, and those that a model to continue from has learned.

    It has the kind of each column, and of numbers the smallest and the largest one and the share of missing ones.

    Parameters
    ----------
    passes : the source, which has the kinds of columns
    before, rows : the schema of the model to continue from, of whose rows there is no sample, and their number

    >>> with Passes([{"age": 31}, {"age": 17, "city": "Rome"}], ReadOptions(bits=10), 1) as passes:
    ...     schema = SchemaOfRun(passes)
    ...     schema.begin(1)
    ...     _ = [schema(block) for block in passes.blocks(1)]
    >>> schema.extra()["schema"]["age"]
    {'kind': 'number', 'low': 17.0, 'high': 31.0, 'missing': 0.0}
    """

    name = "schema"

    def __init__(self, passes: Passes, before: Mapping[str, Any] | None = None, rows: int = 0) -> None:
        self._passes, self._ranges, self._rows = passes, ColumnRanges(passes.options.bits), 0
        self._counts, self._known, self._numeric = True, -1, list[str]()
        self._sample = Reservoir(ROWS)
        # A column that is missing or new is a renamed one more often than not.
        self._check = None if not before else SchemaCheck(before, replace(passes.options, strict=False))
        if before:
            numeric = {name: one for name, one in before.items() if "low" in one}
            counts = {name: round((1 - one["missing"]) * rows) for name, one in numeric.items()}
            self._rows = rows
            self._ranges.restore({name: [one["low"], one["high"], counts[name]] for name, one in numeric.items()})

    def begin(self, pass_number: int) -> None:
        """Count rows in the first pass only."""
        self._counts = pass_number == 1

    def __call__(self, block: Block) -> Block:
        """Count the values of a block, and return it as it is."""
        if self._counts:
            kinds = self._passes.kinds
            if kinds.count != self._known:
                self._known, self._numeric = kinds.count, [*self._passes.options.log, *kinds.numeric]
            self._rows += len(block)
            self._ranges.add(block, self._numeric)
            self._sample.add(block)
            if self._check is not None:
                self._check.count(block)
        return block

    def end(self, pass_number: int, last: bool) -> None:
        """Warn of columns that the model to continue from does not have, or that are missing."""
        differences = [] if self._check is None or pass_number > 1 else self._check.columns(self._passes.kinds)
        if differences:
            found = "; ".join(differences[:SHOWN])
            warnings.warn(f"the rows differ from those that the model has learned: {found}", UserWarning, stacklevel=2)

    def extra(self) -> dict[str, Any]:
        """Return the schema, without the column of labels."""
        kinds = self._passes.kinds.known.items()
        features = {name: kind for name, kind in kinds if kind != CLASSES and LabelWords.of_kind(kind) is None}
        features |= {name: "number" for name, kind in features.items() if sign_of(kind) is not None}
        found: dict[str, dict[str, Any]] = {name: {"kind": kind} for name, kind in features.items()}
        for name, (low, high, count, *_) in self._ranges.pack().items():
            missing = max(0.0, 1 - count / max(self._rows, 1))
            found[name] = {"kind": features.get(name, "number"), "low": low, "high": high, "missing": missing}
        return {"schema": dict(sorted(found.items()))} if found else {}

    @property
    def sample(self) -> Block:
        """A random sample of the rows."""
        rows, _ = self._sample.rows()
        return rows if rows.numbers is None else take_rows(rows, np.argsort(hashes_of(rows.numbers)))

    def pack(self) -> tuple[Any, dict[str, Any]]:
        """Return the state as JSON and arrays."""
        return [self._rows, self._ranges.pack()], self._sample.pack()

    def unpack(self, known: Any, arrays: Any) -> None:
        """Continue from the result of :meth:`pack`."""
        self._rows, ranges = known
        self._ranges.restore(ranges)
        self._sample.unpack(arrays)


class SchemaCheck:
    """Compares rows with the schema of a model.

    Parameters
    ----------
    schema : as :class:`SchemaOfRun` stores it; None if unknown, so that nothing is compared
    options : options that the rows are read with; with ``strict``, the first difference is an error
    """

    def __init__(self, schema: Mapping[str, Mapping[str, Any]] | None, options: ReadOptions) -> None:
        self.schema, self.options = schema or {}, options
        ranges = {name: (one["low"], one["high"]) for name, one in self.schema.items() if "low" in one}
        wide = {name: (low - (high - low) / 2, high + (high - low) / 2) for name, (low, high) in ranges.items()}
        self._outside, self._far = Outside(ranges, options.bits), Outside(wide, options.bits)
        self._rows = 0

    def count(self, block: Block) -> None:
        """Count the rows of a block, without a look at their values."""
        self._rows += len(block)

    def add(self, block: Block, kinds: Kinds) -> None:
        """Add the rows of a block; ``kinds`` has the columns seen so far."""
        self.count(block)
        found = self._outside.add(block)
        self._far.add(block)
        if self.schema and kinds.seen.header and not kinds.seen.names & {*self.schema, *self._declared}:
            known = ", ".join(sorted({*self.schema, *self._declared}))
            got = ", ".join(sorted(kinds.seen.names)) or "none"
            raise ValueError(f"columns: got {got}, expected those of training: {known}")
        if not self.options.strict or not self.schema:
            return
        for name, entry in found.items():
            row = int(np.searchsorted(block.indptr, entry, side="right")) - 1
            line = block.line if block.lines is None else int(block.lines[row])
            expected = f"a number {self._range(name)}, as in training; or leave out strict (--strict)"
            raise Malformed(block.file, line, name, self._shown(name, block.values[entry]), expected)
        if differences := self.columns(kinds):
            raise refuse("columns", "; ".join(differences), "those of training; or leave out strict (--strict)")

    def warning(self, kinds: Kinds, problems: Problems) -> str | None:
        """Return how the rows differ from those of training; None if they do not."""
        if not self.schema:
            return None
        # The extremes of some rows are seldom those of all: a few values just beyond them are no difference.
        outside = [
            f"{count:,} of the values of {name!r} are not {self._range(name)}, such as {self._shown(name, example)}"
            for name, (count, first) in self._outside.found.items()
            for example in [self._far.found.get(name, (0, first))[1]]
            if name in self._far.found or count > max(FEW, FEW_OF_ROWS * self._rows)
        ]
        dates = {*self.options.dates, *(name for name, one in self.schema.items() if one["kind"] == DATE)}
        words = [
            f"{count:,} of the values of {name!r} are {'not dates' if name in dates else 'words, not numbers'}"
            for name, count in problems.words.items()
        ]
        found = [*self.columns(kinds), *words, *outside]
        if not found:
            return None
        more = f"; and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
        return f"the rows differ from those of training: {'; '.join(found[:SHOWN])}{more}"

    @property
    def _declared(self) -> set[str]:
        """The features whose kind options declare, which the schema need not have."""
        options = self.options
        declared = {*options.categories, *options.log, *options.text, *options.dates}
        excluded = {options.label, options.importance, *options.ignore}
        return {name for name in declared - excluded if options.keep is None or name in options.keep}

    def _range(self, name: str) -> str:
        column = self.schema[name]
        return f"from {self._shown(name, column['low'])} to {self._shown(name, column['high'])}"

    def _shown(self, name: str, value: float) -> str:
        """Return a value of a column as text, without the transformation."""
        return f"{math.copysign(math.expm1(abs(value)), value) if name in self.options.log else value:.6g}"

    def columns(self, kinds: Kinds) -> list[str]:
        """Return which columns are missing or new; a key is missing if many rows have none."""
        seen, declared = kinds.seen, self._declared
        expected = {name for name in self.schema if name not in declared}
        missing = sorted((expected | declared) - seen.names) if seen.header else []
        if not seen.header and self._rows >= MIN_ROWS:
            missing = [n for n in sorted(expected - seen.names) if self.schema[n].get("missing", 0.0) < 0.5]
        # A column of a header has a kind from its first value on; without values, it changes nothing.
        new = sorted((seen.names & kinds.known.keys() if seen.header else seen.names) - expected - declared)
        found = []
        for name in missing:
            close = difflib.get_close_matches(name.lower(), [other.lower() for other in new], 1, 0.8)
            other = next((one for one in new if close and one.lower() == close[0]), None)
            found.append(f"column {name!r} is missing" + ("" if other is None else f", and {other!r} is new"))
            new = [one for one in new if one != other]
        return [*found, *(f"column {name!r} is new" for name in new)]
