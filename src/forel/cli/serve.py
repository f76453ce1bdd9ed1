"""``forel serve``: predict and learn behind HTTP and the protocol of VW's daemon, with a durable log."""

import re
from typing import Annotated, Any

import typer

from forel.cli.errors import errors_as_messages
from forel.cli.options import NO_FLAGS, ReadingFlags
from forel.cli.printing import say

__all__ = ["serve"]

UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
MODEL, WAIT, SAFE = "Model to begin with", "What waits", "Access and limits"


def serve(
    folder: Annotated[str, typer.Argument(metavar="DIR", help="The folder of the log and the models.")],
    model: Annotated[
        str | None, typer.Option("--model", "-i", help="A model file to begin with.", rich_help_panel=MODEL)
    ] = None,
    loss: Annotated[str | None, typer.Option(help="Loss of a new model.", rich_help_panel=MODEL)] = None,
    alpha: Annotated[
        float | None, typer.Option(help="Rate of one new model; several are mixed by default.", rich_help_panel=MODEL)
    ] = None,
    certificate: Annotated[
        bool,
        typer.Option("--certificate", help="Bound how much better any fixed model could be.", rich_help_panel=MODEL),
    ] = False,
    reading: ReadingFlags = NO_FLAGS,
    host: Annotated[str, typer.Option(help="Address; others than this machine's need a token.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port of HTTP; 0 for any.")] = 8080,
    vw_port: Annotated[
        int | None, typer.Option(min=0, max=65535, help="Port of the protocol of VW's daemon.", show_default=False)
    ] = None,
    wait: Annotated[
        str, typer.Option(help="How long predictions wait, as 90s, 30m, 12h, 7d.", rich_help_panel=WAIT)
    ] = "1d",
    negative_after: Annotated[
        str | None,
        typer.Option(help="As --wait, and what waited longer is learned as a negative.", rich_help_panel=WAIT),
    ] = None,
    most_waiting: Annotated[int, typer.Option(help="How many predictions wait.", rich_help_panel=WAIT)] = 1_000_000,
    retain: Annotated[
        str | None, typer.Option(help="How long the log is kept; for ever by default.", rich_help_panel=WAIT)
    ] = None,
    checkpoint: Annotated[int, typer.Option(help="Save the models every n rows.", rich_help_panel=WAIT)] = 100_000,
    promote_at: Annotated[
        float | None,
        typer.Option(help="Promote a challenger that is better at this level, such as 0.01.", show_default=False),
    ] = None,
    token_file: Annotated[
        str | None, typer.Option(help="File with the token that requests have to bear.", rich_help_panel=SAFE)
    ] = None,
    tls_cert: Annotated[str | None, typer.Option(help="Certificate for TLS.", rich_help_panel=SAFE)] = None,
    tls_key: Annotated[str | None, typer.Option(help="Its private key.", rich_help_panel=SAFE)] = None,
    max_body: Annotated[int, typer.Option(help="Bytes of a request.", rich_help_panel=SAFE)] = 4 << 20,
    max_rows: Annotated[int, typer.Option(help="Rows of a request.", rich_help_panel=SAFE)] = 10_000,
    max_features: Annotated[int, typer.Option(help="Features of a row.", rich_help_panel=SAFE)] = 10_000,
    max_connections: Annotated[int, typer.Option(help="Open connections.", rich_help_panel=SAFE)] = 1024,
) -> None:
    """Serve predictions, and learn from their outcomes.

    What is predicted with an id waits in a log for its outcome; the model
    learns from it when it comes. A server that is killed starts again where
    it was. In a new folder, it begins with --model, or with a new model.

    Examples:
      forel serve clicks --model m.forel
      forel serve clicks --bits 22 --negative-after 30m --vw-port 26542
      curl -s localhost:8080/v1/predict -H 'content-type: application/json' \\
        -d '{"row": {"site": "news"}, "id": "r1"}'
    """
    with errors_as_messages():
        options_of = _import_serve()
        waiting = options_of.Waiting(seconds(negative_after or wait), most_waiting, negative_after is not None)
        limits = options_of.Limits(max_body, max_rows, max_features, max_connections)
        token = None
        if token_file is not None:
            with open(token_file, encoding="utf-8") as file:
                token = file.read().strip()
        options = options_of.ServeOptions(
            host, port, vw_port, token, tls_cert, tls_key, waiting, limits, checkpoint,
            None if retain is None else seconds(retain), level=promote_at, promote=promote_at is not None,
        )  # fmt: skip
        first = _first_model(folder, model, {"loss": loss, "alpha": alpha}, certificate, reading)
        options_of.serve(folder, first, options, _announce)


def _import_serve() -> Any:
    """Return what the server needs, or say which extra has it."""
    from forel.validation import refuse

    try:
        import httptools  # noqa: F401
        import msgspec  # noqa: F401
    except ImportError as error:
        raise refuse("serve", f"no module {error.name!r}", "the extra serve: pip install 'forel[serve]'") from None
    from forel.serve import run

    return run


def _first_model(folder: str, path: str | None, given: dict[str, Any], certificate: bool, reading: ReadingFlags) -> Any:
    """Return the model that a new folder begins with; None for a folder that has one."""
    import pathlib

    from forel.data import ReadOptions
    from forel.learner.grid import default_grid
    from forel.training.model import Model, load
    from forel.training.start import initial_model
    from forel.validation import refuse

    settings = {name: value for name, value in given.items() if value is not None}
    options = reading.options()
    chosen = [f"--{name}" for name in (*settings, *(["certificate"] if certificate else []), *options)]
    if path is not None:
        if chosen:
            raise refuse(chosen[0], "a value", "none with --model, whose settings and reading are used")
        return load(path)
    if any(pathlib.Path(folder, "checkpoints").glob("*")):
        if chosen:
            raise refuse(chosen[0], "a value", f"none: {folder} has a model, which continues to learn")
        return None
    read = ReadOptions().updated(options)
    if read.classes in ("auto",) or isinstance(read.classes, int):
        raise refuse("classes", read.classes, "the names of all classes, separated by commas")
    classes = None if read.classes is None else len(read.classes)
    learner = initial_model(1 << read.bits, default_grid(**settings), certified=certificate, classes=classes)
    return Model(learner, {"reading": read.stored})


def _announce(server: Any) -> None:
    folder = server.folder
    cut = f", {folder.log.cut} bytes of an incomplete record cut off" if folder.log.cut else ""
    say(
        f"forel: {server.service.contest.rows:,} rows learned, {folder.replayed:,} of them again from the log, "
        f"{len(folder.index.waiting):,} predictions wait{cut}"
    )
    vw = "" if server.vw_port is None else f", lines of VW on port {server.vw_port}"
    say(f"forel: ready on {server.url}{vw}; Ctrl-C stops")


def seconds(text: str) -> float:
    """Return a length of time in seconds.

    >>> seconds("30m"), seconds("1.5h")
    (1800.0, 5400.0)
    """
    from forel.validation import refuse

    found = re.fullmatch(r"(\d+(?:\.\d+)?)([smhd])", text)
    if not found:
        raise refuse("wait", text, "a number with s, m, h or d, as in 30m")
    return float(found[1]) * UNITS[found[2]]
