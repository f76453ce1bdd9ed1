"""``forel challengers``: list, add, promote, roll back or remove models of a running server."""

from typing import Any

import typer

from forel.cli.errors import errors_as_messages
from forel.cli.options import parse_settings
from forel.cli.printing import print_json, print_table, say
from forel.markup import number_text

__all__ = ["challengers"]

ACTIONS = {"list": False, "add": True, "promote": True, "rollback": False, "remove": True}  # whether one needs a name


def challengers(
    url: str,
    action: str = "list",
    name: str | None = None,
    *,
    settings: list[str] | None = None,
    model: str | None = None,
    token_file: str | None = None,
    as_json: bool = False,
) -> None:
    """List or change the models of a running server.

    A challenger learns from the same events as the model that is served, and
    is compared with it by a test that is valid whenever one looks. No request
    is dropped by a change, which is a record of the log.

    \b
    Examples:
      forel challengers http://127.0.0.1:8080
      forel challengers http://127.0.0.1:8080 add fast --settings alpha=0.5
      forel challengers http://127.0.0.1:8080 add old --model m.forel
      forel challengers http://127.0.0.1:8080 promote fast
      forel challengers http://127.0.0.1:8080 rollback
      forel challengers http://127.0.0.1:8080 remove fast

    Arguments
    ---------
    url : Of the server, such as http://127.0.0.1:8080.
    action : list, add, promote, rollback or remove.
    name : Of the challenger.

    Options
    -------
    settings : To add a new model: a setting, such as alpha=0.5; default for the default experts; repeatable.
    model (-f) : To add a model file: its name in DIR/incoming.
    token_file : File with the token of the server.
    as_json (--json) : Print JSON instead of text.
    """
    if action not in ACTIONS:
        raise typer.BadParameter(f"got {action!r}, expected one of {', '.join(ACTIONS)}", param_hint="action")
    if ACTIONS[action] != (name is not None):
        raise typer.BadParameter(f"expected {'one' if ACTIONS[action] else 'none'} with {action}", param_hint="name")
    if (action == "add") != (bool(settings) != (model is not None)):
        expected = "one of them with add, and none otherwise"
        raise typer.BadParameter(f"expected {expected}", param_hint="--settings, --model")
    with errors_as_messages():
        from forel.cli.serve import read_token
        from forel.serve.client import Client

        try:
            with Client(url, read_token(token_file), retries=0) as client:
                if action == "add":
                    client.change(add=name, **({"model": model} if model else {"settings": parse_settings(settings)}))
                elif action != "list":
                    client.change(**{action: True if name is None else name})
                models = client.model()["models"]
        except (ValueError, OSError) as error:
            raise ValueError(f"{url}: {error}") from None
        print_json(models) if as_json else _print(models)


def _print(models: list[dict[str, Any]]) -> None:
    rows = (
        [
            one["name"] + (" (served)" if one["served"] else ""),
            "–" if one["loss"] is None else number_text(one["loss"], decimals=5),
            f"{one['rows']:,}",
            one["settings"],
        ]
        for one in models
    )
    print_table(["", "loss", "rows", "settings"], rows, left=4)
    for one in models:
        if "against_served" in one:
            say(one["against_served"]["sentence"], err=False)
