"""Overlap: process the margins of rows on another thread while a kernel learns from the rows after them."""

from collections.abc import Callable
from queue import SimpleQueue
from threading import Thread
from typing import Any

from numpy.typing import NDArray

from forel.learner.rows import Rows

__all__ = ["PIECE", "Follow", "learn_in_pieces"]

Follow = Callable[[NDArray[Any], int], None]  # processes margins, given the number of rows before them
Learn = Callable[[Rows, NDArray[Any], NDArray[Any], NDArray[Any]], int]
PIECE = 1024  # rows: a kernel learns them in about a millisecond, ten times as long as a thread takes to start


def learn_in_pieces(
    learn: Learn,
    rows: Rows,
    labels: NDArray[Any],
    importance: NDArray[Any],
    out: NDArray[Any],
    follow: Follow | None = None,
) -> int:
    """Learn rows and return how many were learned from, piece by piece if ``follow`` processes their margins.

    Pieces are processed in order, so that results do not depend on threads. An exception of ``follow`` is raised after
    all rows were learned from.

    Parameters
    ----------
    learn : writes the margins of rows to the last argument, and returns how many rows it learned from
    rows, labels, importance, out : its arguments
    follow : called for every piece on another thread; for a single piece on the caller's
    """
    if follow is None or rows.number <= PIECE:
        done = learn(rows, labels, importance, out)
        if follow is not None:
            follow(out[:done], 0)
        return done
    pieces: SimpleQueue[tuple[int, int] | None] = SimpleQueue()
    failures: list[BaseException] = []
    thread = Thread(target=_follow_pieces, args=(pieces, out, follow, failures), name="forel-margins", daemon=True)
    thread.start()
    done = 0
    try:
        while done < rows.number:
            start, stop = done, min(done + PIECE, rows.number)
            some = rows._replace(indptr=rows.indptr[start : stop + 1])
            done += learn(some, labels[start:stop], importance[start:stop], out[start:stop])
            pieces.put((start, done))
            if done < stop:
                break
    finally:
        pieces.put(None)
        thread.join()
    if failures:
        raise failures[0]
    return done


def _follow_pieces(
    pieces: "SimpleQueue[tuple[int, int] | None]", out: NDArray[Any], follow: Follow, failures: list[BaseException]
) -> None:
    try:
        while (piece := pieces.get()) is not None:
            start, stop = piece
            follow(out[start:stop], start)
    except BaseException as error:
        failures.append(error)
