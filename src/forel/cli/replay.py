"""``forel replay``: the model of a log at any moment, with other settings, or without some events."""

from typing import Any

from forel.cli.errors import errors_as_messages
from forel.cli.options import parse_settings
from forel.cli.printing import jsonable, print_json, print_reports, say
from forel.markup import counted

__all__ = ["replay"]


def replay(
    folder: str,
    *,
    until: str | None = None,
    without: list[str] | None = None,
    without_file: str | None = None,
    settings: list[str] | None = None,
    start: str | None = None,
    name: str | None = None,
    model: str | None = None,
    as_json: bool = False,
) -> None:
    """Learn the events of a server again.

    The same events give the same model, to the last byte. Metrics are those of
    predictions as they were served, and as the replayed model would have made
    them when each outcome came.

    \b
    Examples:
      forel replay clicks --until 2026-11-19T03:00 --model before.forel
      forel replay clicks --settings alpha=0.5 --settings l1=1
      forel replay clicks --without r17 --without r18 --model without.forel

    Arguments
    ---------
    folder (DIR) : The folder of a server, which may be running.

    Options
    -------
    until : The id of the last event, or a time such as 2026-11-19T03:00.
    without : An id to leave out; repeatable.
    without_file : A file with an id to leave out on each line.
    settings : Another setting, such as alpha=0.5 or l1=1; default for the default experts; repeatable.
    start (-i) : Another model to begin with.
    name : Of the models of the server; the served one.
    model (-f) : Write the model to this file.
    as_json (--json) : Print JSON instead of text.
    """
    with errors_as_messages():
        from forel.cli.log import moment
        from forel.log import replay
        from forel.store.atomic import check_outputs
        from forel.training.model import load, save
        from forel.validation import refuse

        check_outputs({"--model": model})
        if settings and start is not None:
            raise refuse("--start", start, "none with --settings")
        left_out = list(without or ())
        if without_file is not None:
            with open(without_file, encoding="utf-8") as file:
                left_out += [line.rstrip("\n") for line in file if line.strip()]
        other = load(start) if start is not None else _changed(folder, settings) if settings else None
        last: str | float | None = until
        if until is not None and (until[:4].isdigit() and until[4:5] == "-"):
            last = moment(until)
        found = replay(folder, last, other, left_out, name)
        if model is not None:
            save(model, found.model)
        if found.unknown:
            first = found.unknown[0]
            say(f"--without: {counted(len(found.unknown), 'id')} without an outcome in the log, such as {first!r}")
        title = found.model.settings.title
        if as_json:
            served, replayed = jsonable(found.served), jsonable(found.replayed)
            print_json({"rows": found.rows, "settings": found.model.settings.summary, "model": model,
                        "served": served, "replayed": replayed, "unknown": list(found.unknown)})  # fmt: skip
            return
        print_reports({"as served": found.served, "replayed": found.replayed}, title)
        if model is not None:
            say(f"wrote {model}", err=False)


def _changed(folder: str, settings: list[str]) -> Any:
    """Return a new model that reads rows as that of a folder does, with other settings."""
    from forel.log.folder import first_model, with_settings

    return with_settings(first_model(folder), parse_settings(settings))
