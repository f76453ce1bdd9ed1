"""Budgets: each package has a number of lines of code that it may not exceed."""

import ast
import collections
import io
import pathlib
import tokenize

import pytest

SOURCE = pathlib.Path(__file__).parents[2] / "src" / "forel"

# Lines of code. What is not a package of its own here belongs to the interfaces.
BUDGETS = {
    "theory": 5228,
    "losses": 833,
    "experts": 494,
    "evidence": 461,
    "jit": 520,
    "learner": 5146,
    "data": 7102,
    "training": 3108,
    "store": 1558,
    "log": 740,
    "serve": 1458,
    "lab": 422,
    "interfaces": 4182,
}
FILES = 333

NOT_CODE = {
    tokenize.COMMENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
    tokenize.INDENT,
    tokenize.NEWLINE,
    tokenize.NL,
}
DOCUMENTED = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def code_lines(text):
    """The number of lines that are not blank and not part of a comment, a docstring or an import statement."""
    code, other = set(), set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in NOT_CODE:
            code.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
            other.update(_lines(node.body[0]))
        if isinstance(node, ast.Import | ast.ImportFrom):
            other.update(_lines(node))
    return len(code - other)


def _lines(node):
    return range(node.lineno, node.end_lineno + 1)


@pytest.fixture(scope="module")
def sizes():
    """Lines of code by package."""
    found = collections.Counter()
    for path in SOURCE.rglob("*.py"):
        name = path.relative_to(SOURCE).parts[0]
        found[name if name in BUDGETS else "interfaces"] += code_lines(path.read_text())
    return found


def test_code_is_counted_without_comments_docstrings_imports_and_blank_lines():
    text = '''"""Module."""

import os
from math import (
    inf,
)


# A comment.
def double(x):
    """Return
    2x.
    """
    return (
        2 * x  # twice
    )


TEXT = """a
b"""
'''
    assert code_lines(text) == 6
    assert code_lines('"""A docstring alone."""\n') == 0


@pytest.mark.parametrize("package", BUDGETS)
def test_a_package_is_within_its_budget(package, sizes):
    assert sizes[package] <= BUDGETS[package], "remove code, or merge what does the same"


def test_the_number_of_files_is_within_its_budget():
    assert len(list(SOURCE.rglob("*.py"))) <= FILES
