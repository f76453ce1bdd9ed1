"""The names that ``forel.theory`` offers: typed for checkers, loaded on first use, and the same in both."""

import ast
import pathlib
import subprocess
import sys

import pytest

from forel import theory


def typed_names():
    """The names imported for type checkers, each with its module."""
    tree = ast.parse(pathlib.Path(theory.__file__).read_text(encoding="utf-8"))
    (block,) = (node for node in tree.body if isinstance(node, ast.If))
    return {alias.name: node.module for node in block.body for alias in node.names}


def test_names_for_type_checkers_are_the_lazily_loaded_ones():
    assert sorted(typed_names()) == sorted(theory.__all__) == sorted(dir(theory))
    for name, module in typed_names().items():
        loaded = getattr(theory, name)
        if module == "forel.theory":
            assert loaded is sys.modules[f"forel.theory.{name}"]
        else:
            assert loaded is getattr(sys.modules[module], name)


def test_the_error_of_an_unknown_name_lists_the_known_ones():
    with pytest.raises(AttributeError, match=r"has no attribute 'FTLR'; it has .*FTRL"):
        theory.FTLR  # noqa: B018


def test_importing_the_package_loads_none_of_its_modules():
    code = "import sys, forel.theory; assert not [m for m in sys.modules if m.startswith('forel.theory.')]"
    subprocess.run([sys.executable, "-c", code], check=True)
