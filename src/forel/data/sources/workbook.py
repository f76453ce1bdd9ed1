"""The first sheet of an Excel workbook as CSV text, by openpyxl, the extra ``xlsx``."""

import csv
import io
import warnings
from collections.abc import Callable, Iterator
from datetime import datetime, time
from typing import Any

__all__ = ["sheet_bytes"]

ERRORS = frozenset(("#N/A", "#DIV/0!", "#VALUE!", "#REF!", "#NAME?", "#NUM!", "#NULL!"))  # of formulas: no value


def sheet_bytes(file: Any) -> Callable[[int], bytes]:
    """Return a function that returns the next bytes of the first sheet, at most as many as it is asked for."""
    try:
        from openpyxl import load_workbook
    except ModuleNotFoundError:
        raise _refused(file, "a workbook", "the extra xlsx: pip install 'forel[xlsx]'; or a file in CSV") from None
    try:
        with warnings.catch_warnings(action="ignore"):  # of styles and rules, which do not matter here
            sheets = load_workbook(file, read_only=True, data_only=True).worksheets
    except (KeyError, TypeError, ValueError, SyntaxError) as wrong:
        raise _refused(file, f"a damaged workbook ({wrong})", "one that Excel opens, or a file in CSV") from wrong
    if not sheets:
        raise _refused(file, "a workbook without a sheet", "one whose first sheet is a table")
    lines, rest = _lines(sheets[0]), b""

    def pull(size: int) -> bytes:
        nonlocal rest
        rest = rest or next(lines, b"")
        found, rest = rest[:size], rest[size:]
        return found

    return pull


def _refused(file: Any, what: str, expected: str) -> ValueError:
    return ValueError(f"files: got {getattr(file, 'name', 'a stream')}, {what}, expected {expected}")


def _lines(sheet: Any) -> Iterator[bytes]:
    """Yield the rows as lines of CSV, all as wide as the first, so that lines have the numbers of rows."""
    sheet.reset_dimensions()  # which some writers get wrong
    width = 0
    for row in sheet.iter_rows(values_only=True):
        cells = [_text(cell) for cell in row]
        while cells and not cells[-1]:
            cells.pop()
        width = width or len(cells)
        line = io.StringIO()
        if cells:
            csv.writer(line, lineterminator="").writerow([*cells, *[""] * (width - len(cells))])
        yield line.getvalue().encode("utf-8", "backslashreplace") + b"\n"


def _text(cell: Any) -> str:
    if cell is None or cell in ERRORS:
        return ""
    if isinstance(cell, datetime) and cell.time() == time():
        return cell.date().isoformat()
    return " ".join(str(cell).split())
