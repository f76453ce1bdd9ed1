"""Flags of Vowpal Wabbit have the same meaning: its results on rows from integer arithmetic."""

import io
import json
import pathlib
import re

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

import forel
from forel.cli import vowpal
from forel.cli.app import COMMANDS, DEV, app, load_command
from forel.data import Names, read, slot
from forel.data.block import Block
from forel.data.features.rows import add_constant
from forel.learner.kernels import kernel
from forel.learner.learner import Learner
from forel.losses import Quantile
from forel.training.scoring import predict_blocks


def rows(count=400, state=7):
    """Return labels and features that every machine agrees on."""
    found = []
    for _ in range(count):
        words, score = [], 0
        for k in range(6):
            state = (state * 1103515245 + 12345) % 2**31
            word, value = state // 65536 % 12, 1 + state // 1024 % 8
            words.append(f"{'abcdef'[k]}{word}:{value / 8}")
            score += ((word * 7 + k * 5) % 11 - 5) * value
        state = (state * 1103515245 + 12345) % 2**31
        found.append((1 if score + state // 65536 % 40 - 20 > 0 else -1, " ".join(words)))
    return found


# vw --ftrl -d FILE -b 22 --no_stdin FLAGS, version 9.11.9: "average loss". For squared loss with
# --min_prediction -100 --max_prediction 100 as well, without which VW keeps predictions within the labels seen so far.
FIGURES = [
    ("zero", "--loss_function squared --ftrl_alpha 0.01 --ftrl_beta 0 --l1 2", 0.343647),
    ("sign", "--loss_function squared --ftrl_alpha 0.01 --ftrl_beta 0 --l1 2", 0.974051),
    ("zero", "--loss_function squared --ftrl_alpha 0.3 --ftrl_beta 1 --l1 1 --l2 0.5", 0.177867),
    ("sign", "--loss_function squared --ftrl_alpha 0.3 --ftrl_beta 1 --l1 1 --l2 0.5", 0.679822),
    ("zero", "--loss_function squared --ftrl_alpha 0.3 --ftrl_beta 1 --noconstant", 0.184035),
    ("sign", "--loss_function logistic --ftrl_alpha 0.3 --ftrl_beta 1 --l1 1 --l2 0.5", 0.639658),
    ("sign", "--loss_function hinge --ftrl_alpha 0.3 --ftrl_beta 1 --l1 1 --l2 0.5", 0.772764),
]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(kernel, "kernel", kernel.uncompiled_kernel)
    monkeypatch.setattr(Learner, "nonzeros", 0)  # uncompiled code takes a second for 2^16 weights
    for name in ("zero", "sign"):
        lines = (f"{(y + 1) // 2 if name == 'zero' else y} |x {words}\n" for y, words in rows())
        (tmp_path / f"{name}.vw").write_text("".join(lines))
    names = [(y, [word.split(":")[0] for word in words.split()]) for y, words in rows()]
    two = (f"{y} |x {' '.join(words[:4])} |z {' '.join(words[4:])} {words[0]}\n" for y, words in names)
    (tmp_path / "two.vw").write_text("".join(two))
    return tmp_path


def run(*words):
    done = CliRunner().invoke(app, [str(word) for word in words])
    assert done.exit_code == 0, done.output
    return done.stdout


@pytest.mark.parametrize(("file", "flags", "loss"), FIGURES)
def test_losses_are_those_of_vowpal_wabbit(file, flags, loss, folder):
    words = ("train", "--ftrl", "-d", folder / f"{file}.vw", "-b", 16, "--quiet", "--json", *flags.split())
    assert json.loads(run(*words))["report"]["loss"] == pytest.approx(loss, abs=1e-5)


def test_the_constant_is_penalized_and_kept_with_the_model(folder):
    flags = "--loss_function squared --ftrl_alpha 0.3 --ftrl_beta 1 -b 12 --names --quiet"
    run("train", folder / "zero.vw", "-f", folder / "m", *flags.split(), "--l1", 1)
    stored = forel.load(folder / "m")
    assert stored.extra["reading"]["constant"] is True
    assert stored.names[slot("Constant", bits=12)] == "Constant"
    assert stored.learner.weights[slot("Constant", bits=12), 0] > 0
    assert not stored.learner.bias[0]
    run("train", folder / "zero.vw", "-f", folder / "n", *flags.split(), "--l1", 1000)
    assert not forel.load(folder / "n").learner.weights.any()
    # It goes on, predicts and is evaluated with the constant.
    ((block, margins),) = predict_blocks(stored, str(folder / "zero.vw"))
    assert block.indices.size == 400 * 7
    assert margins.any()
    run("train", folder / "zero.vw", "-i", folder / "m", "-f", folder / "m2", *flags.split(), "--l1", 1)
    twice = forel.load(folder / "m2")
    run("train", folder / "zero.vw", folder / "zero.vw", "-f", folder / "m3", *flags.split(), "--l1", 1)
    assert twice.learner.weights.tolist() == forel.load(folder / "m3").learner.weights.tolist()


def test_passes_with_and_without_a_cache_have_the_constant_once(folder, monkeypatch):
    flags = "--loss_function squared --ftrl_alpha 0.3 -b 16 --quiet --passes 2"
    run("train", folder / "zero.vw", "-f", folder / "a", *flags.split())
    monkeypatch.setattr("forel.training.passes.Passes._needs_cache", lambda *_: False)
    run("train", folder / "zero.vw", "-f", folder / "b", *flags.split())
    states = [forel.load(folder / name).learner.state.numbers.tobytes() for name in "ab"]
    assert len(set(states)) == 1


def test_flags_of_forel_keep_their_meaning(folder):
    flags = ("-b", 16, "--quiet", "--json", "--alpha", 0.3)
    half = json.loads(run("train", folder / "zero.vw", *flags, "--loss", "squared", "--no-bias"))["report"]["loss"]
    assert 2 * half == pytest.approx(0.184035, rel=0.1)  # with another beta, but not with twice the slope
    run("train", folder / "zero.vw", "-f", folder / "m", "--loss", "squared", *flags)
    assert "constant" not in forel.load(folder / "m").extra["reading"]


def test_a_setting_is_given_once(folder):
    done = CliRunner().invoke(app, ["train", str(folder / "zero.vw"), "--alpha", "0.1", "--ftrl_alpha", "0.2"])
    assert done.exit_code == 2
    assert "is given twice" in done.output


def test_quantiles_are_named_as_in_vw():
    chosen = {"loss": "logistic", "alpha": None, "bias": True}
    for given, loss in (({}, "quantile:0.9"), ({"loss": "quantile", "tau": 0.9}, "logistic")):
        values, names, _ = vowpal.translate_vw_options({**chosen, "loss": loss}, given, False, [])
        assert values["loss"] == Quantile(0.9)
        assert names == (["loss"] if given else [])
    with pytest.raises(typer.BadParameter, match="is for --loss quantile"):
        vowpal.translate_vw_options(chosen, {"tau": 0.9}, False, [])


def test_a_row_has_the_constants_slot_once():
    at = slot("Constant", bits=3)
    other = (at + 1) % 8
    block = Block(np.array([0, 2, 2, 3]), np.int32([at, other, other]), np.float32([2, 3, 5]), np.float32([1, 0, 1]))
    dense = block.matrix(8).toarray()
    dense[:, at] += 1
    assert (add_constant(block, 3).matrix(8).toarray() == dense).all()
    assert add_constant(block, 3).indices.size == 5


def test_the_constant_feature_is_added_with_its_flag():
    names = Names(10)
    (block,) = read(io.BytesIO(b"1 |a x y\n0 |\n"), "vw", bits=10, constant=True, names=names, interactions=["aa"])
    assert np.diff(block.indptr).tolist() == [6, 1]
    assert "Constant" in {names[k] for k in names}


def test_errors_of_unsupported_options_name_the_guide_that_has_an_alternative_for_each():
    commands = map(load_command, COMMANDS | DEV)
    options = (option for command in commands for param in command.params for option in param.opts)
    own = {option.lstrip("-") for option in options if option.startswith("-")}  # others are arguments
    assert not own & {*vowpal.UNSUPPORTED, *vowpal.SHORT}
    for flag in ("--cb", "-l"):
        done = CliRunner().invoke(app, ["train", "rows.vw", flag], env={"COLUMNS": "300", "TERM": "dumb"})
        assert done.exit_code == 2
        assert f"Vowpal Wabbit's {flag}: forel does not have it; docs/guide/from_vw.md" in " ".join(done.output.split())
    page = (pathlib.Path(__file__).parents[2] / vowpal.GUIDE).read_text()
    advice = dict(
        re.findall(r"^\| (`-.*`) \| (.*) \|$", page.partition("## Options that forel does not have")[2], re.M)
    )
    named = {name for names in advice for name in re.findall(r"`--(\w+)`", names)}
    assert named == vowpal.UNSUPPORTED
    for option in re.findall(r"--[a-z][a-z-]+", " ".join(advice.values())):
        assert option[2:] in own | {"hash"} | set(vowpal.NAMES), f"{option} does not exist"


@pytest.mark.parametrize(
    "words", ["-d rows.vw -q ab", "--loss_function logistic --data=no.vw", "rows.vw --l1 1", "-c rows.vw"]
)
def test_arguments_without_a_command_are_of_training(words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rows.vw").write_text("1 |a x\n")
    failed = CliRunner().invoke(app, words.split())
    assert failed.exit_code == 2
    assert f"Did you mean: forel train {words}" in " ".join(failed.stderr.split())


@pytest.mark.parametrize("word", ["--verison", "trian", "-q"])
def test_other_arguments_without_a_command_are_misspelled(word):
    failed = CliRunner().invoke(app, [word])
    assert failed.exit_code == 2
    assert "No such" in failed.stderr
    assert "forel train" not in failed.stderr


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ("--ngram 2", "--ngram: got 2, expected none without --text, which names columns"),
        ("--text x --ngram 20", "--ngram: got 20, expected 1 to 8 words"),
    ],
)
def test_lengths_that_cannot_be_are_refused(flags, message, folder):
    done = CliRunner().invoke(app, ["train", str(folder / "two.vw"), *flags.split()], env={"COLUMNS": "300"})
    assert done.exit_code == 2
    assert message in done.output
