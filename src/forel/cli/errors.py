"""Errors of input and usage: a message on stderr and exit code 2, never a traceback."""

import os
import re
import shlex
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

import typer

from forel.cli.printing import say
from forel.markup import counted

if TYPE_CHECKING:
    from forel.data import Problems

__all__ = ["all_options", "errors_as_messages", "name_options", "print_problems"]

SHOWN = 5  # malformed examples

# Arguments of functions whose options have another name.
ARGUMENTS = {
    "certified": "--certificate",
    "checkpoint_every": "--checkpoint",
    "fixed_share": "--share",
    "slices": "--slice",
}
# What Python does, and the command line by another command, or not at all.
PYTHON = {
    ": stored.of_key(...)": ", which forel convert MODEL --key KEY writes",
    "forel.load(path)": "in Python, forel.load(path)",
}
SEEDS = ("--shuffle",)  # flags whose arguments are seeds in Python
NO_MEMORY = "out of memory; use fewer bits, or fewer lanes"
FILES = ("model", "files")  # errors of their content, which may be in any of several options


@contextmanager
def errors_as_messages(unfinished: Callable[[], str] | None = None) -> Iterator[None]:
    """Print errors of input and usage as messages that name options; Ctrl-C is exit code 130.

    Parameters
    ----------
    unfinished : returns what to print after Ctrl-C, unless the interrupt has a message
    """
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _print_warning
            yield
    except BrokenPipeError:
        # The reader of the output has closed it; nothing can be written, not even when the process ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(1) from None
    except (ValueError, OSError, MemoryError) as error:
        message = getattr(error, "strerror", None) or str(error) or NO_MEMORY  # without [Errno 2]
        file = getattr(error, "filename", None)
        say(f"forel: {name_options(f'{file}: {message}' if file else message, all_options())}")
        raise typer.Exit(2) from None
    except KeyboardInterrupt as stop:
        state = str(stop) if stop.args else "" if unfinished is None else unfinished()
        say(f"forel: stopped{state and '; '}{state}")
        sys.stdout.flush()
        # A thread that waits for standard input would block the interpreter's exit.
        os._exit(130)


def _print_warning(message: Warning | str, *_: object, **__: object) -> None:
    say(f"forel: {name_options(str(message), all_options())}")


def name_options(message: str, options: Iterable[str]) -> str:
    """Return an error message that names options instead of arguments of Python functions.

    >>> name_options("holdout_after: got 0, expected at least 1", ["--holdout-after"])
    '--holdout-after: got 0, expected at least 1'
    >>> name_options("day: got 'categories=1', expected a number; or use categories=['day']", ["--categories"])
    "day: got 'categories=1', expected a number; or use --categories day"
    >>> name_options("alpha, lanes: got 1 and 2, expected one", ["--alpha", "--beta"])
    'alpha, lanes: got 1 and 2, expected one'
    >>> name_options("certificate: got True, expected False for 3 classes", ["--certificate"])
    '--certificate is not available for 3 classes'
    >>> name_options("model: got 'models by city', expected the model of one key: stored.of_key(...)", ["--model"])
    "model: got 'models by city', expected the model of one key, which forel convert MODEL --key KEY writes"
    """
    known = {name: option for option in options for name in (option, option.lstrip("-").replace("-", "_"))} | ARGUMENTS
    given, expected, remedy = message.rpartition(", expected ")  # what was given is shown as it is
    message = f"{given}{expected}{_remedy(remedy, known)}"
    head, got, rest = message.partition(": got ")
    names = [known.get(name) for name in head.split(", ") if name not in FILES]
    if not (names and all(names)):
        return message
    shown, rest = ", ".join(map(str, names)), rest.replace(", expected None", ", expected none", 1)
    given = r"\d+" if shown in SEEDS else "True"
    if refused := re.match(rf"{given}, expected (?:False|none)\b", rest):
        return f"{shown} is not available{rest[refused.end() :]}"
    return f"{shown}{got}{re.sub(r'^None, ', 'nothing, ', rest)}"


def _remedy(text: str, known: Mapping[str, str]) -> str:
    """Return a remedy in which arguments of Python functions are options.

    >>> _remedy("another; use rate='adagrad', or leave out strict (--strict)", {"rate": "--rate"})
    'another; use --rate adagrad, or leave out --strict'
    >>> _remedy("a number; or use categories=['home town']", {"categories": "--categories"})
    "a number; or use --categories 'home town'"
    """
    for python, instead in PYTHON.items():
        text = text.replace(python, instead)
    text = re.sub(r"\b\w+ \w+ \((--[a-z-]+ \w+)\)|\b\w+ \((--[a-z-]+)\)", lambda found: found[1] or found[2], text)

    def option(found: re.Match[str]) -> str:
        name, value = known.get(found["name"]), found["value"].strip("[]'\"")
        return found[0] if name is None else name if value == "True" else f"{name} {shlex.quote(value)}"

    return re.sub(r"\b(?P<name>[a-z]\w*)=(?P<value>\[[^\]]*\]|'[^']*'|[\w.]+)", option, text)


def print_problems(problems: "Problems") -> None:
    """Print the first malformed examples, and their number, on stderr."""
    if problems.count:
        more = f", the first {SHOWN}" if problems.count > SHOWN else ""
        say(f"Skipped {counted(problems.count, 'malformed example', more)}:")
        for message in problems.messages[:SHOWN]:
            say(f"  {name_options(message, all_options())}")


def all_options() -> list[str]:
    """Return the long options of all commands."""
    from forel.cli.app import COMMANDS, DEV, load_command

    options = [param.opts[0] for name in COMMANDS | DEV for param in load_command(name).params]
    return [option for option in options if option.startswith("--")]
