"""The door: blocks of examples from whatever holds them."""

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

from forel.data.apart import Apart
from forel.data.block import Block
from forel.data.cached import Cache, cache_in
from forel.data.columns import Columns
from forel.data.constant import name_constant, with_constant
from forel.data.crosses import CHUNK, Step, crosses_of
from forel.data.dicts import dict_blocks, json_dicts
from forel.data.kinds import Kinds, checked
from forel.data.lines import LineFormat, parse_lines
from forel.data.names import Names
from forel.data.place import BEGINNING, Place, single_sources
from forel.data.problems import Malformed, Problems
from forel.data.recognise import FORMATS, recognise
from forel.data.separated import Separated, parse_separated
from forel.data.sources import BROKEN, LONGEST, chunks, opened, skip
from forel.data.tables import Numbered, arrow_batches, coded_batches, numbered, table_blocks
from forel.data.tasks import Task, found, ready
from forel.data.transforms import bucket_of
from forel.validation import refuse, whole

__all__ = ["BLOCK_BYTES", "Reader", "open_blocks"]

LENIENT = ("unlabelled", "unweighted", "strict")  # options that say what may be missing or odd, not what it means
OBJECTS = 16  # how much more memory an object of JSON takes than a line of other formats, roughly
BLOCK_BYTES = 1 << 21  # long enough that what is done once for each block does not count, and some fit into a cache


@dataclass(frozen=True)
class Options:
    """How to read; each is explained at :func:`open_blocks`."""

    format: str = "auto"
    bits: int = 22
    columns: Columns = field(default_factory=Columns)
    zero_based: bool | Literal["auto"] = "auto"
    tags: bool = False
    block_bytes: int = BLOCK_BYTES
    interactions: tuple[Any, ...] = ()
    step: Step | None = None
    constant: bool = False
    line_limit: int | None = None

    def __post_init__(self) -> None:
        if self.format != "auto" and self.format not in FORMATS:
            raise refuse("format", self.format, f"auto or one of {', '.join(FORMATS)}")
        if not 1 <= whole("bits", self.bits, low=1) <= 31:
            raise refuse("bits", self.bits, "1 to 31")
        if whole("block_bytes", self.block_bytes, low=1) > 1 << 30:
            raise refuse("block_bytes", self.block_bytes, "1 to 2**30")
        # Compiled code counts entries of a chunk in 32 bits.
        if self.line_limit is not None and whole("line_limit", self.line_limit, low=1) > 1 << 30:
            raise refuse("line_limit", self.line_limit, "1 to 2**30")
        if self.zero_based not in (True, False, "auto"):
            raise refuse("zero_based", self.zero_based, "True, False or 'auto'")

    def longest(self, form: str) -> int:
        """Return how many bytes a line of a format may have."""
        if self.line_limit is not None:
            return self.line_limit
        return LONGEST // OBJECTS if form == "jsonl" else LONGEST

    @property
    def meaning(self) -> dict[str, Any]:
        """What examples depend on, as JSON holds it."""
        columns = {name: v for name, v in asdict(self.columns).items() if name not in LENIENT}
        columns["kinds"] = columns.pop("known")
        columns["bucket"] = [f"{name}:{per}" for name, per in self.columns.bucket]
        own = {name: getattr(self, name) for name in ("format", "bits", "zero_based", "interactions")}
        # As JSON would give it back, to be compared with that.
        meaning: dict[str, Any] = json.loads(json.dumps({**own, **columns}))
        return meaning


@dataclass(frozen=True, eq=False)
class Reader:
    """Blocks of one pass; after iterating, ``problems``, ``names`` and ``kinds`` have what was met on the way.

    To parse on several threads, run :meth:`tasks` on any of them and give the results to :meth:`finish` in order; with
    ``names`` tasks have to be run in order too. ``start`` is where to begin: the place after a block of another reader
    of the same source, with the same options. Names that were kept before may be kept again.
    """

    source: Any
    options: Options
    problems: Problems
    names: Names | None = field(default=None, repr=False)
    start: Place = BEGINNING
    kinds: Kinds = field(default_factory=Kinds, repr=False)

    def __iter__(self) -> Iterator[Block]:
        for task in self.tasks():
            yield from self.finish(*task())

    def tasks(self) -> Iterator[Task]:
        """Yield the work for each block, in order."""
        if self.options.constant and self.names is not None:
            name_constant(self.names)
        if isinstance(self.source, Cache):
            self.kinds.found(0).update(self.source.kinds)
            yield from self.source.tasks(self.source.find(self.start) if self.start > BEGINNING else 0)
            return
        for number, one in enumerate(single_sources(self.source)):
            if number >= self.start.file:
                start = self.start if number == self.start.file else Place(number)
                yield from _tasks(one, self, Problems(self.problems.on_error), start)

    def finish(self, block: Block | None, problems: Problems) -> Iterator[Block]:
        """Count the problems of a task, and yield its block if there are examples in it."""
        self.problems.take(problems)
        if block is not None and len(block):
            yield with_constant(block, self.options.bits) if self.options.constant else block


def open_blocks(
    source: Any,
    format: str = "auto",
    *,
    bits: int = 22,
    label: str | None = None,
    importance: str | None = None,
    keep: Iterable[str] | None = None,
    ignore: Iterable[str] = (),
    categories: Iterable[str] = (),
    log: Iterable[str] = (),
    bucket: Iterable[str] = (),
    unlabelled: bool = False,
    unweighted: bool = False,
    kinds: Mapping[str, str] | None = None,
    strict: bool = True,
    interactions: Iterable[Any] = (),
    constant: bool = False,
    zero_based: bool | Literal["auto"] = "auto",
    tags: bool = False,
    names: bool | Names = False,
    words: bool = False,
    on_error: Literal["raise", "skip"] = "raise",
    block_bytes: int = BLOCK_BYTES,
    line_limit: int | None = None,
) -> Reader:
    r"""Read examples in blocks, in constant memory.

    Parameters
    ----------
    source : a path, a pattern, "-" for standard input, a binary file object, or a list of these, plain or compressed by
        gzip or zstd; or a table with the Arrow PyCapsule interface; or an iterable of dicts
    format : one of vw, svmlight, csv, tsv, jsonl, parquet, arrow; "auto" looks at the name, then at the first bytes;
        a cache of parsed blocks is an Arrow file
    bits : there are 2**bits slots, which names are hashed to; svmlight's ids are kept as they are where they fit
    label, importance : the columns or keys that hold them, in formats with names
    keep, ignore : the columns or keys to use, or not to use, as features
    categories : the columns or keys whose numbers are codes: each a category, as strings are
    log : the columns or keys whose numbers x are taken as sign(x) log(1 + |x|)
    bucket : the columns or keys whose numbers become categories by size, such as ``price^8..16``; ``price:4`` for four
        buckets to a doubling
    unlabelled : whether the columns of label and importance may be missing from a table
    unweighted : whether the column of importance may be missing; then it is 1
    kinds : what columns hold, as ``Reader.kinds.known`` has it after reading: "number", "category", or "either", which
        goes by the value. Of a column of text that is not among them, the first value decides
    strict : whether a word in a column of numbers is malformed; if not, it is a category of that column
    interactions : crosses, as :func:`forel.data.crosses.crosses_of` takes them: ``"ab"`` for pairs of features of
        namespaces that begin with a and with b, ``"city*device"`` for columns of that name, or three of these
    constant : whether each example gets the feature ``Constant``, which is penalised as others are, and not crossed
    zero_based : of svmlight: False takes 1 from every id; True and "auto" keep ids as they are written, because which
        of the two a file is cannot be known before its end
    tags : whether to keep the tags of VW's examples
    names : whether to keep the name that first touched each slot; or names to go on with
    words : whether to keep every feature apart, with its namespace and name, for blocks that are not learned from;
        svmlight's are its ids
    on_error : "raise", or "skip" to leave out malformed examples and count them in ``problems``
    block_bytes : about how much is read at a time
    line_limit : bytes of the longest line or header, beyond which text is refused, as it may be no text; None for
        64 MB, and 4 MB in JSON lines, whose objects take more memory than their text

    >>> import io
    >>> reader = open_blocks(io.BytesIO(b"1 2.0 |a x:3 y\n-1 |a y\n"))
    >>> [(b.labels.tolist(), b.importance.tolist(), b.values.tolist()) for b in reader]
    [([1.0, -1.0], [2.0, 1.0], [3.0, 1.0, 1.0])]
    """
    if on_error not in ("raise", "skip"):
        raise refuse("on_error", on_error, "'raise' or 'skip'")
    columns = Columns(
        label, importance, None if keep is None else tuple(keep), tuple(ignore), tuple(categories), tuple(log),
        tuple(bucket_of(one) for one in bucket), unlabelled, unweighted, checked(kinds), strict,
    )  # fmt: skip
    interactions = tuple(interactions)
    crosses = crosses_of(interactions)
    if words and (crosses is not None or names or constant):
        raise refuse("words", words, "False with interactions, names or a constant")
    step = Apart() if words else crosses
    options = Options(format, bits, columns, zero_based, tags, block_bytes, interactions, step, constant, line_limit)
    if isinstance(names, Names) and names.bits != bits:
        raise refuse("names", f"names of {names.bits} bits", f"names of {bits}, as there are slots")
    held = names if isinstance(names, Names) else Names(bits) if names else None
    return Reader(source, options, Problems(on_error), held, kinds=Kinds(columns.known))


def _tasks(source: Any, reader: Reader, problems: Problems, start: Place) -> Iterator[Task]:
    if isinstance(source, str) or hasattr(source, "read"):
        file = "standard input" if source == "-" else source if isinstance(source, str) else _name(source)
        with opened(source) as stream:
            yield from _stream_tasks(stream, file, reader, problems, start)
    elif hasattr(source, "__arrow_c_stream__") or hasattr(source, "__arrow_c_array__"):
        import pyarrow as pa

        whole = hasattr(source, "__arrow_c_stream__")
        batches = pa.RecordBatchReader.from_stream(source) if whole else [pa.record_batch(source)]
        held = numbered(batches, "table", problems, "table")
        yield from _table_tasks(held, "table", reader, problems, start, _columns(reader, start))
    elif isinstance(source, Iterable) and not isinstance(source, Mapping | bytes):
        yield from _dict_tasks(enumerate(source, 1), "dicts", reader, problems, start)
    else:
        expected = "a path, a binary file object, a table with the Arrow PyCapsule interface, or an iterable of dicts"
        raise refuse("source", type(source).__name__, expected)


def _stream_tasks(stream: Any, file: str, reader: Reader, problems: Problems, start: Place) -> Iterator[Task]:
    options, columns, kinds_found = reader.options, _columns(reader, start), reader.kinds.found(start.file)
    try:
        form = options.format if options.format != "auto" else recognise(file, stream.peek(1 << 12))
    except BROKEN as wrong:
        problems.meet(Malformed(file, 1, None, str(wrong).rstrip("."), "a whole file"))
        yield found(None, problems)
        return
    if form in ("csv", "tsv"):
        rows = Separated(
            "," if form == "csv" else "\t",
            columns,
            options.bits,
            options.block_bytes,
            options.step,
            options.longest(form),
        )
        yield from parse_separated(stream, rows, problems, reader.names, file, start, kinds_found)
    elif form == "arrow" and (cache := cache_in(stream, file)) is not None:
        _suit(cache, reader)
        kinds_found.update(cache.kinds)
        yield from cache.tasks(start.blocks, start.file)
    elif form == "parquet":
        held = numbered(coded_batches(stream, columns), "parquet file", problems, file)
        yield from _table_tasks(held, file, reader, problems, start, columns.chosen)
    elif form == "arrow":
        held = numbered(arrow_batches(stream), "arrow file", problems, file)
        yield from _table_tasks(held, file, reader, problems, start, columns)
    elif form == "jsonl":
        limit = options.longest(form)
        dicts = json_dicts(chunks(stream, options.block_bytes, problems, file, limit=limit), problems, file)
        yield from _dict_tasks(dicts, file, reader, problems, start)
    else:
        if options.columns != Columns(unlabelled=columns.unlabelled, unweighted=columns.unweighted):
            given = options.columns.label or "columns"
            raise refuse(
                "label, importance, keep, ignore, categories, log, bucket",
                given,
                f"none for {form}, which has no columns",
            )
        step = None if isinstance(options.step, Apart) and form == "svmlight" else options.step
        if step is not None and form == "svmlight":
            raise refuse("interactions", "crosses", "none for svmlight, which has no namespaces")
        shift = 1 if options.zero_based is False and form == "svmlight" else 0
        lines = LineFormat(form, options.bits, shift, options.tags and form == "vw", step)
        size = options.block_bytes if step is None else min(options.block_bytes, CHUNK)
        skip(stream, start.bytes)
        found_lines = chunks(stream, size, problems, file, start.line, limit=options.longest(form))
        yield from parse_lines(found_lines, lines, problems, reader.names, file, start)


def _columns(reader: Reader, start: Place) -> Columns:
    """Return what the names of a file's columns mean, with what earlier files say about them."""
    known = reader.kinds.before(start.file)
    return replace(reader.options.columns, known=known) if known else reader.options.columns


def _suit(cache: Cache, reader: Reader) -> None:
    """Refuse to read a cache in another way than it was written."""
    made, usual = cache.told.get("options", {}), Options().meaning
    for name, value in reader.options.meaning.items():
        if name not in ("format", "kinds") and value != made.get(name) and (name == "bits" or value != usual[name]):
            raise refuse(name, value, f"{made.get(name)!r}, as {cache.file} was made with")
    for name, kind in cache.kinds.items():
        if reader.options.columns.known.get(name, kind) != kind:
            raise refuse(f"column {name}", f"{kind} in {cache.file}", f"{reader.options.columns.known[name]}")
    if reader.names is not None:
        raise refuse("names", True, f"False for {cache.file}: a cache has none; read what it was made from")


def _table_tasks(
    batches: Iterable[Numbered], file: str, reader: Reader, problems: Problems, start: Place, columns: Columns
) -> Iterator[Task]:
    options = reader.options
    blocks = table_blocks(
        batches, columns, options.bits, options.block_bytes, problems, reader.names, file, options.step,
        reader.kinds.found(start.file),
    )  # fmt: skip
    yield from ready(blocks, problems, start)


def _dict_tasks(
    items: Iterable[tuple[int, Any]], file: str, reader: Reader, problems: Problems, start: Place
) -> Iterator[Task]:
    options, columns, kinds_found = reader.options, _columns(reader, start), reader.kinds.found(start.file)
    blocks = dict_blocks(items, columns, options.bits, problems, reader.names, file, options.step, kinds_found)
    yield from ready(blocks, problems, start)


def _name(stream: Any) -> str:
    with suppress(AttributeError):
        return os.fspath(stream.name) if not isinstance(stream.name, int) else f"file {stream.name}"
    return "stream"
