"""``forel predict -`` as a co-process: each line is answered while the pipe stays open."""

import os
import select
import subprocess
import sys

import pytest

import forel

ROWS = [{"site": "news", "click": 1}, {"site": "shop", "click": 0}] * 20
LINES = {
    "vw": ("", ["|site news", "|site shop", "|site mail"]),
    "jsonl": ("", ['{"site": "news"}', '{"site": "shop"}', '{"site": "mail"}']),
    "csv": ("site\n", ["news", "shop", "mail"]),
}


@pytest.mark.parametrize("form", LINES)
def test_lines_are_answered_as_they_come(form, tmp_path):
    (tmp_path / "rows.vw").write_text("".join(f"{row['click']} |site {row['site']}\n" for row in ROWS))
    rows, options = (str(tmp_path / "rows.vw"), {}) if form == "vw" else (ROWS, {"label": "click"})
    forel.train(rows, forel.Settings(alpha=1.0), bits=8, **options).save(tmp_path / "m.forel")
    command = [sys.executable, "-m", "forel", "predict", "-", "--model", str(tmp_path / "m.forel"), "--format", form]
    before, lines = LINES[form]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0) as child:
        answers = []
        for line in lines:
            child.stdin.write(f"{before}{line}\n".encode())
            before = ""
            assert select.select([child.stdout], [], [], 60)[0], f"no answer to {line!r}"
            answers.append(float(os.read(child.stdout.fileno(), 100)))
        child.stdin.close()
        assert child.wait(60) == 0
        assert child.stdout.read() == b""
    (tmp_path / f"new.{form}").write_text(LINES[form][0] + "".join(f"{line}\n" for line in lines))
    expected = forel.predict(tmp_path / "m.forel", str(tmp_path / f"new.{form}"))
    assert answers == pytest.approx(expected.tolist(), rel=1e-5)
