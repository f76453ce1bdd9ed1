"""``forel log``: list and export what a server recorded."""

from collections.abc import Iterator
from typing import Any

from forel.cli.errors import errors_as_messages
from forel.cli.printing import print_json, say

__all__ = ["log"]

WHAT = ("prediction", "outcome", "example", "dropped", "change")
BATCH = 10_000  # rows of Parquet written at a time


def log(
    folder: str,
    *,
    id: str | None = None,
    what: str | None = None,
    since: str | None = None,
    until: str | None = None,
    rows: bool = False,
    output: str | None = None,
    as_json: bool = False,
    give_up_after: int | None = None,
) -> None:
    """List what a server recorded, in its order.

    Times are those of this machine, unless they have an offset.

    \b
    Examples:
      forel log clicks --id r1
      forel log clicks --what outcome --since 2026-11-19 --json
      forel log clicks --rows --output clicks.parquet

    Arguments
    ---------
    folder (DIR) : The folder of a server, which may be running.

    Options
    -------
    id : Only what happened to this id.
    what : Only prediction, outcome, example, dropped or change.
    since : Only from this time on, such as 2026-11-19T03:00.
    until : Only up to this time.
    rows : With slots and values of rows.
    output (-o) : Write a Parquet file.
    as_json (--json) : Print JSON lines.
    give_up_after : Cut a damaged log at this place; what follows is kept beside it.
    """
    with errors_as_messages():
        from forel.log.files import Log
        from forel.log.files import give_up_after as cut
        from forel.store.atomic import exclusive_lock
        from forel.validation import refuse

        if give_up_after is not None:
            with exclusive_lock(f"{folder}/serve"):
                say(f"forel: {cut(f'{folder}/log', give_up_after):,} bytes cut off, kept in {folder}/log as .damaged")
            return
        if what is not None and what not in WHAT:
            raise refuse("--what", what, f"one of {', '.join(WHAT)}")
        first, last = (None if text is None else moment(text) for text in (since, until))
        found = (
            one
            for one in _events(Log(f"{folder}/log", write=False), rows)
            if (id is None or one["id"] == id)
            and (what is None or one["what"] == what)
            and (first is None or one["time"] >= first)
            and (last is None or one["time"] <= last)
        )
        if output is None:
            for one in found:
                print_json(one) if as_json else print(_line(one))
        else:
            _write(output, found)


def moment(text: str) -> float:
    """Return a time in seconds since 1970.

    >>> moment("2026-11-19T03:00+00:00"), moment("1795057200")
    (1795057200.0, 1795057200.0)
    """
    from datetime import datetime

    from forel.validation import refuse

    try:
        return float(text)
    except ValueError:
        pass
    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError:
        raise refuse("time", text, "one as 2026-11-19T03:00, or seconds since 1970") from None


def _events(log: Any, with_rows: bool) -> Iterator[dict[str, Any]]:
    """Yield each row and each change of a log as a dict, with the same keys in all."""
    from forel.log import Control, Examples, Left, Outcome, Prediction
    from forel.log.records import unpack_rows

    def event(stored: Any, what: str, **more: Any) -> dict[str, Any]:
        keys = ("id", "margin", "label", "importance", "assumed", "slots", "values", "content")
        return {"place": stored.place, "time": stored.record.time, "what": what, **dict.fromkeys(keys), **more}

    def packed(rows: Any, row: int = 0) -> dict[str, Any]:
        part = slice(int(rows.indptr[row]), int(rows.indptr[row + 1]))
        return {"slots": rows.indices[part].tolist(), "values": rows.values[part].tolist()} if with_rows else {}

    names = dict[int, str]()
    for stored in log.records():
        record = stored.record
        if isinstance(record, Prediction):
            names[stored.place] = record.name.decode()
            row = packed(unpack_rows(record.row)) if with_rows else {}
            yield event(stored, "prediction", id=names[stored.place], margin=record.margins.tolist(), **row)
        elif isinstance(record, Outcome):
            more = {"label": record.label, "importance": record.importance, "assumed": record.source == 1}
            yield event(stored, "outcome", id=names.pop(record.place, None), **more)
        elif isinstance(record, Left):
            yield event(stored, "dropped", id=names.pop(record.place, None))
        elif isinstance(record, Control):
            content = " ".join(f"{key}={value}" for key, value in record.content.items())
            yield event(stored, "change", content=content)
        elif isinstance(record, Examples):
            rows = unpack_rows(record.rows)
            for k, label in enumerate(record.labels.tolist()):
                more = {"label": label, "importance": float(record.importance[k]), "margin": record.margins[k].tolist()}
                yield event(stored, "example", **more, **packed(rows, k))


def _line(one: dict[str, Any]) -> str:
    from datetime import datetime

    from forel.markup import clean

    when = datetime.fromtimestamp(one["time"]).isoformat(" ", "milliseconds")
    shown = [f"{key}={one[key]}" for key in ("id", "label", "importance", "content") if one[key] is not None]
    margin = [] if one["margin"] is None else ["margin=" + ",".join(f"{value:.4f}" for value in one["margin"])]
    return str(clean(" ".join([when, f"{one['what']:10}", *shown, *margin])))


def _write(path: str, found: Iterator[dict[str, Any]]) -> None:
    """Write events as Parquet."""
    import os
    from contextlib import suppress
    from itertools import islice

    import pyarrow as pa
    from pyarrow import parquet

    from forel.store.atomic import temporary_path

    number, text = pa.float64(), pa.string()
    schema = pa.schema({
        "place": pa.int64(), "time": number, "what": text, "id": text, "margin": pa.list_(number), "label": number,
        "importance": number, "assumed": pa.bool_(), "slots": pa.list_(pa.int32()), "values": pa.list_(pa.float32()),
        "content": text,
    })  # fmt: skip
    temporary = temporary_path(path)
    try:
        with parquet.ParquetWriter(temporary, schema) as writer:
            while batch := list(islice(found, BATCH)):
                writer.write_table(pa.Table.from_pylist(batch, schema))
        os.replace(temporary, path)
    finally:
        with suppress(FileNotFoundError):
            os.unlink(temporary)
