"""``forel predict -`` as a co-process: each line is answered while the pipe stays open."""

import json
import os
import select
import subprocess
import sys

import numpy as np
import pytest

import forel

# Rows of training, options, and rows to predict.
MODELS = {
    "numbers": ([{"site": "news", "click": 1}, {"site": "shop", "click": 0}], {}),
    "words": ([{"site": "news", "click": "yes"}, {"site": "shop", "click": "no"}], {}),
    "classes": ([{"site": "news", "click": "a"}, {"site": "shop", "click": "b"}, {"site": "x", "click": "c"}], {}),
    "text": ([{"site": "good news, truly", "click": 1}, {"site": "a bad shop, well", "click": 0}], {"text": ["site"]}),
}
CASES = [("vw", "numbers"), *((form, model) for form in ("jsonl", "csv") for model in MODELS)]


def written(form, row):
    if form == "vw":
        return f"|site {row['site']}\n"
    return json.dumps({"site": row["site"]}) + "\n" if form == "jsonl" else f'"{row["site"]}"\n'


@pytest.mark.parametrize(("form", "model"), CASES)
def test_lines_are_answered_as_they_come(form, model, tmp_path):
    rows, options = MODELS[model]
    if form == "vw":
        (tmp_path / "rows.vw").write_text("".join(f"{row['click']} |site {row['site']}\n" for row in rows * 20))
    source, given = (tmp_path / "rows.vw", {}) if form == "vw" else (rows * 20, {"label": "click", **options})
    forel.train(source, forel.Settings(alpha=1.0), bits=8, **given).save(tmp_path / "m.forel")
    command = [sys.executable, "-m", "forel", "predict", "-", "--model", str(tmp_path / "m.forel"), "--format", form]
    before = "site\n" if form == "csv" else ""
    lines = [written(form, row) for row in (*rows, {"site": "mail"})]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0) as child:
        answers = []
        for k, line in enumerate(lines):
            child.stdin.write((before * (k == 0) + line).encode())
            assert select.select([child.stdout], [], [], 60)[0], f"no answer to {line!r}"
            answers.append(os.read(child.stdout.fileno(), 100).decode().strip())
        child.stdin.close()
        assert child.wait(60) == 0
        assert child.stdout.read() == b""
    (tmp_path / f"new.{form}").write_text(before + "".join(lines))
    expected = forel.predict(tmp_path / "m.forel", str(tmp_path / f"new.{form}"))
    if np.asarray(expected).dtype.kind == "f":
        assert [float(answer) for answer in answers] == pytest.approx(np.asarray(expected).tolist(), rel=1e-5)
    else:
        assert answers == list(expected)


@pytest.mark.parametrize("form", ["jsonl", "csv"])
def test_a_malformed_line_ends_the_process_while_the_pipe_stays_open(form, tmp_path):
    rows = [{"site": "news", "click": 1}, {"site": "shop", "click": 0}]
    forel.train(rows * 20, forel.Settings(alpha=1.0), bits=8, label="click").save(tmp_path / "m.forel")
    command = [sys.executable, "-m", "forel", "predict", "-", "--model", str(tmp_path / "m.forel"), "--format", form]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as child:
        child.stdin.write({"jsonl": b'{"site": "news"}\n{bad\n', "csv": b"site\nnews\na,b\n"}[form])
        child.stdin.flush()
        said = child.stderr.read().decode()
        assert (child.wait(60), said.count("\n")) == (2, 1), said
        assert said.startswith(f"forel: standard input, line {2 + (form == 'csv')}")


@pytest.mark.parametrize("form", ["vw", "jsonl", "csv"])
def test_a_skipped_line_is_answered_by_an_empty_line(form, tmp_path):
    (tmp_path / "rows.vw").write_text("1 |site news\n0 |site shop\n" * 20)
    rows = [{"site": "news", "size": 1.5, "click": 1}, {"site": "shop", "size": 2.5, "click": 0}] * 20
    source, given = (tmp_path / "rows.vw", {}) if form == "vw" else (rows, {"label": "click"})
    forel.train(source, forel.Settings(alpha=1.0), bits=8, **given).save(tmp_path / "m.forel")
    command = [sys.executable, "-m", "forel", "predict", "-", "--model", str(tmp_path / "m.forel"), "--format", form]
    command += ["--on-error", "skip"]
    good = {"vw": "|site news\n", "jsonl": '{"site": "news", "size": 1}\n', "csv": "news,1\n"}[form]
    bad = {"vw": "no bar\n", "jsonl": "{no\n", "csv": "a,b,c\n"}[form]
    asked = [good, bad, bad, good, bad + bad, bad + good + bad + good, good, bad]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0
    ) as child:
        child.stdin.write(b"site,size\n" if form == "csv" else b"")
        for lines in asked:
            child.stdin.write(lines.encode())
            answers = ""
            while answers.count("\n") < lines.count("\n"):
                assert select.select([child.stdout], [], [], 60)[0], f"no answer to {lines!r}"
                answer = os.read(child.stdout.fileno(), 1000)
                assert answer, child.stderr.read()
                answers += answer.decode()
            answered = [bool(answer.strip()) for answer in answers.splitlines()]
            assert answered == [line + "\n" == good for line in lines.splitlines()], lines
        child.stdin.close()
        assert child.wait(60) == 0
        assert child.stdout.read() == b""
        assert "Skipped 7 malformed examples" in child.stderr.read().decode()
    text = ("site,size\n" if form == "csv" else "") + "".join(asked)
    piped = subprocess.run(command, input=text, capture_output=True, text=True, timeout=60)
    assert [bool(line) for line in piped.stdout.splitlines()] == [
        line + "\n" == good for line in text.splitlines()[form == "csv" :]
    ]
