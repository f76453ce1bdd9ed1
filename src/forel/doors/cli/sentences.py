"""What goes wrong with input or usage is one sentence on stderr and exit code 2, never a traceback."""

import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import typer

__all__ = ["sentences"]


@contextmanager
def sentences() -> Iterator[None]:
    """Turn errors about input and usage into a sentence, and Ctrl-C into exit code 130."""
    try:
        with warnings.catch_warnings():
            warnings.showwarning = lambda message, *_, **__: typer.echo(f"forel: {message}", err=True)
            yield
    except BrokenPipeError:
        # Whoever read the output has seen enough; nothing more can be written, not even at the end of the process.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(1) from None
    except (ValueError, OSError) as error:
        told = error.strerror if isinstance(error, OSError) and error.strerror else str(error)  # without [Errno 2]
        text = f"{error.filename}: {told}" if isinstance(error, OSError) and error.filename else told
        typer.echo(f"forel: {text}", err=True)
        raise typer.Exit(2) from None
    except MemoryError as error:
        typer.echo(f"forel: {str(error) or 'out of memory; use fewer bits, or fewer lanes'}", err=True)
        raise typer.Exit(2) from None
    except KeyboardInterrupt as stop:
        typer.echo(f"forel: stopped; {stop if stop.args else 'no model was written'}", err=True)
        sys.stdout.flush()
        # A thread may still wait for standard input, and the interpreter could not end before it does.
        os._exit(130)
