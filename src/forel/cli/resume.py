"""``--checkpoint`` and ``--resume``: the path of the checkpoint, and whether it exists."""

import os
from typing import Any

import typer

from forel.validation import refuse

__all__ = ["checkpoint_of", "unfinished_run"]


def checkpoint_of(
    model: str | None, every: int | None, resume: bool, predictions: str | None, cache: str | None
) -> dict[str, Any]:
    """Return the arguments of ``train`` for checkpoints, and print where training starts."""
    if every is None and not resume:
        return {}
    if model is None:
        raise refuse("--model", None, "a file, next to which the checkpoint is written")
    if resume and predictions is not None:
        raise refuse("--predictions", predictions, "none with --resume: predictions of earlier rows would be missing")
    path = _checkpoint_path(model)
    if resume:
        from forel.store.atomic import remove_leftovers

        for written in (model, *([] if cache is None else [cache])):
            remove_leftovers(written)
        found = os.path.exists(path)
        where = f"continues from {path}" if found else f"there is no {path}; starts from the beginning"
        typer.echo(f"forel: {where}", err=True)
    return {"checkpoint": path, "resume": resume, **({} if every is None else {"checkpoint_every": every})}


def unfinished_run(model: str | None, every: int | None, resume: bool) -> str:
    """Return what is left of a run that was interrupted: nothing, or a checkpoint.

    >>> unfinished_run("m.forel", every=None, resume=False)
    'no model was written'
    """
    checkpoints = model is not None and (every is not None or resume) and os.path.exists(_checkpoint_path(model))
    return f"no model was written{f'; --resume continues from {_checkpoint_path(model)}' if checkpoints else ''}"


def _checkpoint_path(model: str | None) -> str:
    return f"{model}.checkpoint"
