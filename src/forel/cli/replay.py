"""``forel replay``: the model of a log at any moment, with other settings, or without some events."""

from dataclasses import fields
from typing import Annotated, Any

import typer

from forel.cli.errors import errors_as_messages
from forel.cli.printing import jsonable, print_json, say
from forel.markup import counted

__all__ = ["replay"]


def replay(
    folder: Annotated[str, typer.Argument(metavar="DIR", help="The folder of a server, which may be running.")],
    until: Annotated[
        str | None,
        typer.Option(help="The id of the last event, or a time such as 2026-11-19T03:00.", show_default=False),
    ] = None,
    without: Annotated[
        list[str] | None, typer.Option(help="An id to leave out; repeatable.", show_default=False)
    ] = None,
    without_file: Annotated[
        str | None, typer.Option(help="A file with an id to leave out on each line.", show_default=False)
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(help="Another setting, such as alpha=0.5 or l1=1; default for the default experts; repeatable."),
    ] = None,
    start: Annotated[
        str | None, typer.Option("--start", "-i", help="Another model to begin with.", show_default=False)
    ] = None,
    name: Annotated[
        str | None, typer.Option("--name", help="Of the models of the server; the served one.", show_default=False)
    ] = None,
    model: Annotated[
        str | None, typer.Option("--model", "-f", help="Write the model to this file.", show_default=False)
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")] = False,
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
    """
    with errors_as_messages():
        from forel.cli.log import moment
        from forel.cli.tables import open_console, report_table
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
        open_console().print(report_table({"as served": found.served, "replayed": found.replayed}, title))
        if model is not None:
            say(f"wrote {model}", err=False)


def _changed(folder: str, settings: list[str]) -> Any:
    """Return a new model that reads rows as that of a folder does, with other settings."""
    from forel.learner.settings import Settings
    from forel.log.folder import first_model, with_settings

    known, given = {field.name for field in fields(Settings)}, dict[str, Any]()
    for one in settings:
        key, equals, value = one.partition("=")
        if one != "default" and (not equals or key not in known):
            expected = f"got {one!r}, expected name=value of a setting, such as alpha=0.5, or default"
            raise typer.BadParameter(expected, param_hint="--settings")
        if equals:
            try:
                given[key] = float(value) if "." in value or "e" in value else int(value)
            except ValueError:
                given[key] = value
    return with_settings(first_model(folder), given)
