"""``forel dev cache``: parse files into a cache, or show the content of a cache."""

from typing import Annotated, Any

import typer

from forel.cli.errors import errors_as_messages, print_problems
from forel.cli.options import NO_FLAGS, AsJson, Files, ReadingFlags, Threads, source_of
from forel.cli.printing import print_json, say
from forel.markup import counted


def cache(
    files: Files = None,
    output: Annotated[
        str | None, typer.Option("--output", "-o", help="Write a cache to this file; by default, show a cache.")
    ] = None,
    reading: ReadingFlags = NO_FLAGS,
    threads: Threads = None,
    as_json: AsJson = False,
) -> None:
    """Write parsed files to a cache, or show the content of a cache.

    Training reads a cache faster than the files.

    \b
    Examples:
      forel dev cache clicks.vw --output clicks.cache
      forel train clicks.cache --model m.forel
      forel dev cache clicks.cache
    """
    source = source_of(files, None)
    with errors_as_messages():
        from forel.training.row_cache import write_cache

        if output is not None:
            caches = [write_cache(source, output, threads, **reading.options())]
        else:
            caches = [_open_cache(path) for path in source]
        summaries = [_summary(cached) for cached in caches]
        if as_json:
            print_json(summaries[0] if len(summaries) == 1 else summaries)
            return
        for cached, facts in zip(caches, summaries, strict=True):
            rows, blocks = counted(facts["rows"], "row"), counted(facts["blocks"], "block")
            say(f"{cached.file}: {rows}, {counted(facts['entries'], 'feature', ' in all')}, {blocks}", err=False)
            options = {k: v for k, v in facts["options"].items() if v not in (None, [], "auto")}
            say("  " + ", ".join(f"{name}={value}" for name, value in options.items()), err=False)
            for path in facts["sources"] or ["a stream"]:
                say(f"  from {path}", err=False)
            print_problems(cached.problems)


def _open_cache(path: str) -> Any:
    from forel.data.sources.row_cache import open_cache
    from forel.validation import refuse

    if path == "-":
        raise refuse("files", "none", "files and --output to write a cache, or a cache to show")
    with open(path, "rb") as file:
        found = open_cache(file, path)
    if found is None:
        raise refuse("files", path, "a cache; --output writes one")
    return found


def _summary(cache: Any) -> dict[str, Any]:
    sources = cache.key["sources"]
    return {
        "file": cache.file,
        "rows": cache.totals["rows"],
        "entries": cache.totals["entries"],
        "blocks": len(cache),
        "bytes_of_text": cache.totals["bytes"],
        "malformed": cache.problems.count,
        "options": cache.key["options"],
        "sources": None if sources is None else [path for path, *_ in sources],
    }
