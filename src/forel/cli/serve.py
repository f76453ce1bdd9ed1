"""``forel serve``: predict and learn behind HTTP and the protocol of VW's daemon, with a durable log."""

import re
from typing import Any

from forel.cli.errors import errors_as_messages
from forel.cli.options import NO_FLAGS, ReadingFlags, parse_settings
from forel.cli.printing import say

__all__ = ["read_token", "serve"]

UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


def serve(
    folder: str,
    *,
    model: str | None = None,
    loss: str | None = None,
    alpha: float | None = None,
    settings: list[str] | None = None,
    certificate: bool = False,
    reading: ReadingFlags = NO_FLAGS,
    host: str = "127.0.0.1",
    port: int = 8080,
    vw_port: int | None = None,
    stream: str | None = None,
    promote_at: float | None = None,
    wait: str = "1d",
    negative_after: str | None = None,
    most_waiting: int = 1_000_000,
    retain: str | None = None,
    checkpoint: int = 100_000,
    token_file: str | None = None,
    tls_cert: str | None = None,
    tls_key: str | None = None,
    max_body: int = 4 << 20,
    max_rows: int = 10_000,
    max_features: int = 10_000,
    max_connections: int = 1024,
) -> None:
    """Serve predictions, and learn from their outcomes.

    What is predicted with an id waits in a log for its outcome; the model
    learns from it when it comes. A server that is killed starts again where
    it was. In a new folder, it begins with --model, or with a new model.

    Examples:
      forel serve clicks --model m.forel
      forel serve clicks --bits 22 --negative-after 30m --vw-port 26542
      forel serve clicks --from kafka://broker:9092/outcomes
      curl -s localhost:8080/v1/predict -H 'content-type: application/json' \\
        -d '{"row": {"site": "news"}, "id": "r1"}'

    Arguments
    ---------
    folder (DIR) : The folder of the log and the models.

    Model to begin with
    -------------------
    model (-i) : A model file to begin with.
    loss : Loss of a new model.
    alpha : Rate of one new model; several are mixed by default.
    settings : Another setting of a new model, such as l1=1; repeatable.
    certificate : Bound how much better any fixed model could be.

    Options
    -------
    host : Address; others than this machine's need a token.
    port : Port of HTTP; 0 for any.
    vw_port : Port of the protocol of VW's daemon.
    stream (--from) : Learn from a topic, kafka://BROKER:PORT/TOPIC.
    promote_at : Promote a better challenger, at this level; such as 0.01.

    What waits
    ----------
    wait : How long predictions wait, as 90s, 30m, 12h, 7d.
    negative_after : As --wait; what waited longer is learned as a negative.
    most_waiting : How many predictions wait.
    retain : How long the log is kept; for ever by default.
    checkpoint : Save the models every n rows.

    More on access and limits
    -------------------------
    token_file : File with the token that requests have to bear.
    tls_cert : Certificate for TLS.
    tls_key : Its private key.
    max_body : Bytes of a request.
    max_rows : Rows of a request.
    max_features : Features of a row.
    max_connections : Open connections.
    """
    with errors_as_messages():
        from forel.validation import number

        for name, given in (("port", port), ("vw_port", vw_port)):
            if given is not None:
                number(name, given, "0 to 65535", 0, 65535)
        options_of = _import_serve()
        waiting = options_of.Waiting(seconds(negative_after or wait), most_waiting, negative_after is not None)
        limits = options_of.Limits(max_body, max_rows, max_features, max_connections)
        options = options_of.ServeOptions(
            host, port, vw_port, read_token(token_file), tls_cert, tls_key, waiting, limits, checkpoint,
            None if retain is None else seconds(retain), level=promote_at, promote=promote_at is not None,
            stream=stream,
        )  # fmt: skip
        chosen = {key: value for key, value in (("loss", loss), ("alpha", alpha)) if value is not None}
        first = _first_model(folder, model, parse_settings(settings) | chosen, certificate, reading)
        options_of.serve(folder, first, options, _announce)


def read_token(path: str | None) -> str | None:
    """Return the token in a file; None without one."""
    if path is None:
        return None
    with open(path, encoding="utf-8") as file:
        return file.read().strip()


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


def _first_model(
    folder: str, path: str | None, settings: dict[str, Any], certificate: bool, reading: ReadingFlags
) -> Any:
    """Return the model that a new folder begins with; None for a folder that has one."""
    import pathlib

    from forel.data import ReadOptions
    from forel.learner.grid import default_grid, without_filters
    from forel.learner.learner import Learner
    from forel.training.model import Model, load
    from forel.validation import refuse

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
    grid = default_grid(**settings) if classes is None else without_filters(default_grid(**settings))
    learner = Learner(1 << read.bits, grid, classes, certified=certificate)
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
