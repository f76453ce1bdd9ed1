"""Reading options: one dataclass for keywords, command line, caches, checkpoints and models."""

import json
from dataclasses import fields

import pytest

from forel.cli.app import load_command
from forel.data import ReadOptions
from forel.data.options import LENIENT, MEANING, STORED, ReadKeywords

NAMES = [one.name for one in fields(ReadOptions)]
CHANGED = ReadOptions(
    format="csv", bits=10, label="y", importance="w", positive="yes", keep=["a", "b"], ignore=["c"],
    categories=["a"], log=["b"], interactions=["ab", ("a", "b")],
    constant=True, kinds={"a": "category"},
    separator=";", header=False, missing=["-"], decimal=",",
    unlabelled=True, unweighted=True, strict=False, tags=True, names=True, on_error="skip", block_bytes=500,
    line_limit=1000,
)  # fmt: skip
# Chosen by commands, or internal to them.
NOT_ON_COMMAND_LINE = {
    "constant", "kinds", "unlabelled", "unweighted", "strict", "tags", "columns", "entry_names",
    "block_bytes",
}  # fmt: skip
PARAMETERS = {"form": "format"}


def test_keywords_for_type_checkers_are_the_fields():
    assert {*ReadKeywords.__annotations__, "format"} == set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_json_gives_options_back(name):
    values = json.loads(json.dumps(CHANGED.to_json()))
    again = ReadOptions.from_json(values)
    assert again.to_json() == values
    assert again.meaning == CHANGED.meaning
    missing = ReadOptions.from_json({k: v for k, v in values.items() if k != name})
    assert getattr(missing, name) == getattr(ReadOptions(), name)


def test_the_stored_form_of_options_is_unchanged():
    assert STORED == (
        "encoding", "bits", "label", "importance", "positive", "classes", "keep", "ignore", "categories", "log",
        "text", "ngram", "date", "char_ngram", "separator", "header", "missing", "decimal",
        "interactions", "constant", "kinds",
    )  # fmt: skip
    assert ReadOptions().stored == {"bits": 22}
    assert CHANGED.stored == {
        "bits": 10, "label": "y", "importance": "w", "positive": "yes", "keep": ["a", "b"], "ignore": ["c"],
        "categories": ["a"], "log": ["b"], "interactions": ["ab", ["a", "b"]],
        "separator": ";", "header": False, "missing": ["-"], "decimal": ",",
        "constant": True, "kinds": {"a": "category"},
    }  # fmt: skip


def test_what_examples_mean_does_not_depend_on_lenience():
    assert not set(MEANING) & set(LENIENT)
    assert set(MEANING) == {*STORED, "format", "columns"} - {"constant"}
    assert ReadOptions(unlabelled=True, strict=False).meaning == ReadOptions().meaning


def test_none_leaves_an_option_unchanged():
    assert CHANGED.updated(dict.fromkeys(NAMES)) == CHANGED
    assert CHANGED.updated({"bits": 12}).bits == 12
    with pytest.raises(TypeError, match="color"):
        ReadOptions().updated({"color": 3})


def test_commands_have_the_options_with_their_defaults():
    shared = {}
    for command in ("train", "predict", "evaluate", "convert"):
        for parameter in load_command(command).params:
            name = PARAMETERS.get(parameter.name, parameter.name)
            if name in set(NAMES) - NOT_ON_COMMAND_LINE:
                default = getattr(ReadOptions(), name)
                assert parameter.default in (None, default), (command, name)
                shared.setdefault(command, set()).add(name)
    assert shared["train"] == set(NAMES) - NOT_ON_COMMAND_LINE
    assert all(names <= shared["train"] for names in shared.values())
