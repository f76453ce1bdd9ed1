"""Rows and labels of requests, as a model reads and codes them."""

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forel.data import read, slot
from forel.data.labels import class_name
from forel.data.line_parser import LineParser, ParsedLines
from forel.learner.rows import CoalescedRows
from forel.store.row_reader import RowReader
from forel.store.serving import class_link
from forel.training.metrics import label_kind
from forel.training.model import Model
from forel.validation import refuse

__all__ = ["Coding", "RowsOfRequests"]

# Of labels and values: sums of their products (1e30) over many rows are within float32 (3e38). Larger ones could make
# the state overflow, after which nothing in the log can be learned, so they are refused before they are recorded.
LARGEST = 1e15
WHY = "so that what is learned stays within 32-bit floats; scale the values, or leave them out"
HEAVIEST = 1e6  # importance
KEPT = 1 << 25  # bytes of rows, and 64 for each feature, until features of keys and values are forgotten


class RowsOfRequests:
    """Reads rows as dicts, or as lines of VW text, with the read options of a model.

    >>> from forel.learner.learner import Learner
    >>> from forel.learner.settings import Settings
    >>> rows = RowsOfRequests(Model(Learner(1 << 10, Settings())), most_features=10)
    >>> rows.of_dicts([{"age": 3, "city": "Rome"}, {}]).indptr
    array([0, 2, 2])
    """

    def __init__(self, model: Model, most_features: int) -> None:
        self.options = model.read_options.updated({"unlabelled": True, "strict": False})
        self.parser, self.most = LineParser(self.options), most_features
        self._reader, self._read = self._new_reader(), 0
        columns = {slot(name, bits=self.options.bits): name for name in model.extra.get("schema") or ()}
        self._known: tuple[Any, ...] = (columns, model.names or {})

    def _new_reader(self) -> RowReader | None:
        return None if self.options.transform is not None else RowReader(self.options)

    def of_lines(self, text: bytes) -> ParsedLines:
        """Return the rows of lines; those with too many features or too large values are errors."""
        parsed = self.parser.parse(text)
        wrong = self._too_much(parsed.indptr, parsed.values)
        for k in np.flatnonzero(~(parsed.importance <= HEAVIEST)).tolist():
            wrong[k] = f"got the importance {parsed.importance[k]:g}, expected at most {HEAVIEST:,.0f}"
        if not wrong:
            return parsed
        kept = np.array([k for k in range(parsed.labels.size) if k not in wrong], np.int64)
        errors = parsed.errors | {int(parsed.lines[k]): why for k, why in wrong.items()}
        rows = CoalescedRows(*parsed[:3]).take(kept)
        tags = tuple(parsed.tags[k] for k in kept.tolist())
        return ParsedLines(*rows, parsed.labels[kept], parsed.importance[kept], parsed.lines[kept], tags, errors)

    def of_dicts(self, rows: list[Any], size: int = 0) -> CoalescedRows:
        """Return the rows of dicts, which were some bytes; raise ValueError for one that is not a row."""
        if self._read > KEPT:
            self._reader, self._read = self._new_reader(), 0
        slots, values, ends = list[int](), list[float](), [0]
        for row in rows:
            found = None if self._reader is None else self._reader.read(row)
            if found is None:
                found = self._read_slowly(row)
            slots += found[0]
            values += found[1]
            ends.append(len(slots))
        self._read += size + 64 * len(slots)
        made = CoalescedRows(np.array(ends), np.array(slots, np.int32), np.array(values, np.float32))
        for k, why in self._too_much(made.indptr, made.values).items():
            raise ValueError(f"row {k}: {why}")
        return made

    def names(self, slots: NDArray[np.int32]) -> dict[int, str]:
        """Return the names of slots that are known from training or were read lately, and which of them have others."""
        wanted = set(slots.tolist())
        found = {place: names[place] for names in self._known for place in wanted if place in names}
        if self._reader is not None:
            for (name, namespace), place in self._reader.slots.items():
                if place in wanted:
                    shown = f"{namespace}^{name}" if namespace else name
                    found[place] = shown if found.get(place, shown) == shown else f"{shown} or another"
        return found

    def _read_slowly(self, row: Any) -> tuple[list[int], list[float]]:
        with warnings.catch_warnings():  # that keys differ from those of training
            warnings.simplefilter("ignore")
            block = next(iter(read([row], options=self.options)), None)
        return ([], []) if block is None else (block.indices.tolist(), block.values.tolist())

    def _too_much(self, indptr: NDArray[Any], values: NDArray[Any]) -> dict[int, str]:
        """Return why rows cannot be taken, by their number."""
        lengths = indptr[1:] - indptr[:-1]
        wrong = {k: f"got {lengths[k]:,} features, expected at most {self.most:,}"
                 for k in np.flatnonzero(lengths > self.most).tolist()}  # fmt: skip
        for at in np.flatnonzero(~(np.abs(values) <= LARGEST)).tolist():
            row = int(np.searchsorted(indptr, at, side="right")) - 1
            wrong.setdefault(row, f"got the value {values[at]:g}, expected one within ±{LARGEST:g}, {WHY}")
        return wrong


class Coding:
    """From labels of requests to those that a model learns, and from margins to predictions.

    >>> from forel.learner.learner import Learner
    >>> from forel.learner.settings import Settings
    >>> coding = Coding(Model(Learner(4, Settings())))
    >>> coding.label(-1), coding.label(True), coding.shown(np.array([0.0]))
    (0.0, 1.0, 0.5)
    """

    def __init__(self, model: Model) -> None:
        self.classes, self.words = model.classes, model.label_words
        self.kind, self.domain = label_kind(model.settings), model.settings.labels
        self.low, self.high = getattr(self.domain, "low", -LARGEST), getattr(self.domain, "high", LARGEST)
        self._numbers = {name: float(k) for k, name in enumerate(self.classes or ())}
        self.link: Any = class_link(model.learner) or model.settings.link

    @property
    def expected(self) -> str:
        """What a label has to be."""
        if self.classes is not None:
            return "one of the classes " + ", ".join(map(repr, self.classes[:20]))
        if self.words is not None:
            return self.words.expected.partition(";")[0]
        return {"probability": "a number from 0 to 1, or -1", "sign": "-1, 0 or 1"}.get(
            self.kind, getattr(self.domain, "expected", "a number") + f", at most {LARGEST:g}"
        )

    def label(self, given: Any) -> float:
        """Return the label that is learned, or raise ValueError."""
        found = self._of_word(given) if isinstance(given, str) or self.classes is not None else self._of_number(given)
        if found is None:
            raise refuse("label", given, self.expected)
        return found

    def _of_word(self, given: Any) -> float | None:
        if self.classes is not None:
            return self._numbers.get(class_name(given))
        if self.words is not None:
            try:
                return self.words.encode(given)
            except ValueError:
                return None
        try:
            return self._of_number(float(given))
        except ValueError:
            return None

    def _of_number(self, given: Any) -> float | None:
        if not isinstance(given, int | float) or not abs(given) <= LARGEST:
            return None
        value = float(given)
        if self.kind == "number":
            return value if self.low <= value <= self.high else None
        if self.kind == "sign":
            return {1.0: 1.0, 0.0: -1.0, -1.0: -1.0}.get(value)
        return 0.0 if value == -1 else value if 0 <= value <= 1 else None

    def word(self, label: float) -> float | str:
        """Return a label as clients know it."""
        if self.classes is not None:
            return self.classes[int(label)]
        word = None if self.words is None else (self.words.negative, self.words.positive)[int(label > 0)]
        return label if word is None else word

    def predictions(self, margins: NDArray[Any]) -> Any:
        """Return the predictions of rows, a number each; of classes their probabilities."""
        return self.link(np.asarray(margins if self.classes is not None else margins[:, 0], np.float64))

    def shown(self, margins: NDArray[Any]) -> Any:
        """Return the prediction of one row from its margins: a number, or the name of a class."""
        if self.classes is not None:
            return self.classes[int(np.argmax(margins))]
        return float(self.link(np.asarray(margins[0], np.float64)))

    def probabilities(self, margins: NDArray[Any]) -> dict[str, float] | None:
        """Return the probability of each class of one row; None where there are none."""
        if self.classes is None or not getattr(self.link, "probabilities", False):
            return None
        return dict(zip(self.classes, self.link(np.asarray(margins, np.float64)[None])[0].tolist(), strict=True))
