"""One model for each key: the same bits as training on its rows alone, in memory, in files and in metrics."""

import json
import os
import re
import subprocess
import sys

import numpy as np
import pytest
from typer.testing import CliRunner

import forel
from forel.cli.app import app
from forel.learner.keyed import KeyedModels
from forel.learner.settings import Settings
from forel.store.files import write_file
from forel.store.learners import pack_keyed
from forel.training import passes

ONE = Settings(alpha=0.3, l1=0.1)
COUNTRIES = ("NO", "IT", "São Tomé", "")


def rows_of(count, words=7):
    """Rows of four countries, of which one has a single row; the second country has more features than the others."""
    made = []
    for k in range(count):
        country = COUNTRIES[(k * k % 5 + k // 30) % 3 if k != 5 else 3]
        many = 400 if country == "IT" else words
        made.append(
            {"country": country, "x": k % 5 / 4, "word": f"w{k * k % many}", "z": 0.0, "w": 1 + k % 3,
             "y": (k * k + k // 50) % 11 % 2}
        )  # fmt: skip
    return made


ROWS = rows_of(210)
READING = {"label": "y", "importance": "w", "bits": 12, "ignore": ["country"]}


def file_bytes(tmp_path, model):
    forel.save(tmp_path / "model", model)
    return (tmp_path / "model").read_bytes()


def by_value(trained):
    """The number of rows and the loss of each key, with the name that tables have for it."""
    return {one.value: (one.report.rows, one.report.loss) for one in trained.training.slices[0].slices}


def alone(key, rows=ROWS, **options):
    return forel.train([row for row in rows if row["country"] == key], **options)


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize("settings", [None, ONE], ids=["default", "one setting"])
def test_several_passes_have_the_bytes_and_losses_of_each_key_alone(tmp_path, monkeypatch, settings):
    monkeypatch.setattr(passes, "FEWEST", 37)
    monkeypatch.setattr(passes, "ROWS_PER_KEY", 1)
    options, seen = {"settings": settings, "passes": 3, **READING}, []
    together = forel.train(ROWS[:90], by="country", fallback=True, progress=seen.append, **options)
    for key in together.learner:
        own = alone(key, ROWS[:90], **options)
        assert file_bytes(tmp_path, together.learner[key]) == file_bytes(tmp_path, own.learner)
        assert by_value(together)[key or "(missing)"] == (own.report.rows, own.report.loss)
    assert len(together.training.passes) == 3
    assert together.training.passes[2].loss < together.training.passes[0].loss == together.report.loss
    assert [now.pass_number for now in seen] == sorted(now.pass_number for now in seen)
    assert (seen[-1].pass_number, seen[-1].rows) == (3, 90)
    with pytest.raises(ValueError, match=r"passes: got 2, expected 1 with by \(--by\) and a stream"):
        forel.train(iter(ROWS), by="country", **{**options, "passes": 2})


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize("settings", [None, ONE], ids=["default", "one setting"])
def test_models_have_the_bytes_of_training_on_the_rows_of_each_key_alone(tmp_path, monkeypatch, settings):
    monkeypatch.setattr(passes, "FEWEST", 37)
    monkeypatch.setattr(passes, "ROWS_PER_KEY", 1)
    options = {"settings": settings, "certificate": True, **READING}
    together = forel.train(ROWS, by="country", **options)
    forel.save(tmp_path / "all", together.learner)
    loaded = forel.load(tmp_path / "all").learner
    assert isinstance(loaded, KeyedModels)
    assert list(together.learner) == list(loaded) == ["NO", "IT", "", "São Tomé"]
    for key in loaded:
        own = alone(key, **options)
        expected = file_bytes(tmp_path, own.learner)
        assert file_bytes(tmp_path, together.learner[key]) == expected
        assert file_bytes(tmp_path, loaded[key]) == expected
        assert by_value(together)[key or "(missing)"] == (own.report.rows, own.report.loss)
        assert together.of_key(key).certificate == forel.Model(own.learner, own.extra | {"certificate": {}}).certificate
    assert together.report.rows == sum(rows for rows, _ in by_value(together).values())
    total = sum(one.report.loss * one.report.weight for one in together.training.slices[0].slices)
    assert together.report.loss == pytest.approx(total / together.report.weight)


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize("settings", [None, ONE], ids=["default", "one setting"])
def test_rows_held_out_are_every_nth_of_the_source_and_not_learned(tmp_path, settings):
    together = forel.train(ROWS, settings, by="country", holdout=4, **READING)
    rows = [{**row, "w": 0 if k % 4 == 0 else row["w"]} for k, row in enumerate(ROWS, start=1)]
    for key in together.learner:
        own = alone(key, rows, settings=settings, **READING)
        assert file_bytes(tmp_path, together.learner[key]) == file_bytes(tmp_path, own.learner)
    held_out = forel.predict(together, ROWS)[3::4]
    assert together.training.holdout.rows == held_out.size == 52


@pytest.mark.usefixtures("interpreted")
def test_groups_of_rows_do_not_change_the_file(tmp_path, monkeypatch):
    def written(fewest, **options):
        monkeypatch.setattr(passes, "FEWEST", fewest)
        forel.train(ROWS, by="country", names=True, fallback=True, **READING, **options).save(tmp_path / "m")
        return (tmp_path / "m").read_bytes()

    assert written(11, block_bytes=500) == written(1 << 14)


@pytest.mark.usefixtures("interpreted")
def test_predictions_use_the_model_of_the_key(tmp_path):
    trained = forel.train(ROWS, ONE, by="country", **READING)
    trained.save(tmp_path / "m.forel")
    stored = forel.load(tmp_path / "m.forel")
    found = forel.predict(stored, ROWS[:50])
    for key in ("NO", "IT"):
        chosen = [k for k, row in enumerate(ROWS[:50]) if row["country"] == key]
        expected = forel.predict(alone(key, settings=ONE, **READING), [ROWS[k] for k in chosen])
        assert found[chosen].tolist() == expected.tolist()
    assert [stored.predict_one(row) for row in ROWS[:5]] == pytest.approx(found[:5])
    assert trained.predict_many(ROWS[:5]) == pytest.approx(found[:5])
    unseen_word = {**ROWS[0], "word": "never"}
    assert forel.predict(stored, [unseen_word]) == forel.predict(stored.of_key("NO"), [unseen_word])
    assert stored.of_key("NO").inspect().weights
    evaluation = forel.evaluate(stored, ROWS, slices=["country"])
    assert {one.value for one in evaluation.slices[0].slices} == {"NO", "IT", "São Tomé", "(missing)"}


@pytest.mark.usefixtures("interpreted")
def test_a_key_without_a_model_is_an_error_with_its_line_or_uses_the_model_of_all_rows(tmp_path):
    path = tmp_path / "new.csv"
    path.write_text("country,x,word,z,w,y\nNO,1,w1,0,1,1\nFR,1,w1,0,1,1\n")
    without = forel.train(ROWS, ONE, by="country", **READING)
    with pytest.raises(ValueError, match=r"new.csv, line 3, column 'country': got 'FR', expected one of the 4 keys"):
        forel.predict(without, str(path))
    everything = forel.train(ROWS, ONE, **READING)
    with_fallback = forel.train(ROWS, ONE, by="country", fallback=True, **READING)
    with_fallback.save(tmp_path / "m.forel")
    stored = forel.load(tmp_path / "m.forel")
    assert file_bytes(tmp_path, stored.learner.fallback) == file_bytes(tmp_path, everything.learner)
    assert with_fallback.report == without.report
    found = forel.predict(stored, str(path))
    assert found[0] == forel.predict(without, [{"country": "NO", "x": 1, "word": "w1", "z": 0}])[0]
    assert found[1] == forel.predict(everything, str(path))[1]


@pytest.mark.usefixtures("interpreted")
def test_classes_and_vw_text(tmp_path):
    settings = Settings("softmax", alpha=0.5)
    text = tmp_path / "a.vw"
    text.write_text(
        "".join(f"{k * k % 3} |c {row['country'] or 'none'} |a {row['word']}\n" for k, row in enumerate(ROWS))
    )
    together = forel.train(str(text), settings, by="c", bits=10, classes=["0", "1", "2"])
    lines = text.read_text().splitlines(keepends=True)
    for key in together.learner:
        only = tmp_path / "only.vw"
        only.write_text("".join(line for line in lines if f"|c {key} " in line))
        own = forel.train(str(only), settings, bits=10, classes=["0", "1", "2"])
        assert file_bytes(tmp_path, together.learner[key]) == file_bytes(tmp_path, own.learner)
    assert set(forel.predict(together, str(text))) <= {"0", "1", "2"}


def test_models_take_memory_for_their_features_only(interpreted):
    rows = [{"key": k % 200, "word": f"w{k % 7}", "y": k % 2} for k in range(400)]
    trained = forel.train(rows, ONE, label="y", ignore=["key"], bits=22, by="key")
    assert len(trained.learner) == 200
    assert trained.learner.nbytes < 200 * 40 * 16


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"by": None, "fallback": True}, "fallback: got True, expected none without by (--by)"),
        ({"by": "county"}, "by: got 'county', which no row has, expected a column"),
    ],
)
def test_arguments_that_cannot_be_used(options, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        forel.train(ROWS, **{"settings": ONE, "by": "country", **READING, **options})


@pytest.mark.usefixtures("interpreted")
def test_files_of_models_that_are_cut_or_changed_are_rejected(tmp_path):
    forel.train(ROWS[:40], ONE, by="country", **READING).save(tmp_path / "m.forel")
    whole = (tmp_path / "m.forel").read_bytes()
    rng = np.random.default_rng(1)
    for place in rng.integers(0, len(whole), 40).tolist():
        changed = bytearray(whole)
        changed[place] ^= 1 << int(rng.integers(8))
        for content in (whole[:place], bytes(changed)):
            (tmp_path / "bad").write_bytes(content)
            with pytest.raises(forel.store.ModelFileError):
                forel.load(tmp_path / "bad")


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize("change", ["a slot twice", "sizes", "a key twice", "one more array"])
def test_consistent_checksums_of_inconsistent_models_are_rejected(tmp_path, change):
    header, arrays = pack_keyed(forel.train(ROWS[:40], ONE, by="country", **READING).learner)
    common = {"extra": {}, "estimator": None, "bits": None}
    write_file(tmp_path / "m", header | common, arrays)
    assert len(forel.load(tmp_path / "m").learner) == 4
    if change == "a slot twice":
        arrays["keyed.slots_of_features"][1] = arrays["keyed.slots_of_features"][0]
    elif change == "sizes":
        arrays["sizes"][0] += 1
    elif change == "a key twice":
        header["keys"][1] = header["keys"][0]
    else:
        arrays["other"] = np.zeros(3)
    write_file(tmp_path / "m", header | common, arrays)
    with pytest.raises(forel.store.ModelFileError):
        forel.load(tmp_path / "m")


def test_a_model_of_one_key_is_needed_to_continue_to_explain_and_to_serve(interpreted):
    trained = forel.train(ROWS[:40], ONE, by="country", **READING)
    with pytest.raises(ValueError, match="model: got 'models by country', expected the model of one key"):
        forel.train(ROWS, model=trained)
    with pytest.raises(ValueError, match="got 'models by country'"):
        trained.explain_one(ROWS[0])
    with pytest.raises(ValueError, match="model: got"):
        forel.store.serving_model(trained.learner)
    assert forel.train(ROWS[:10], model=trained.of_key("NO")).learner.rounds > 10
    with pytest.raises(ValueError, match="country: got 'FR', expected one of the"):
        trained.of_key("FR")


class _Stop(Exception):
    pass


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize(("extra", "stops"), [
    ({"certificate": True, "holdout": 4, "names": True, "slices": ["word"]}, (90, 170)),
    ({"passes": 2, "settings": ONE, "holdout_after": 30}, (100, 250, 330)),
    ({"settings": Settings("softmax", alpha=0.5), "label": "w", "importance": None, "classes": 3}, (120,)),
])  # fmt: skip
def test_a_stopped_run_resumes_to_the_same_bytes(tmp_path, monkeypatch, extra, stops):
    monkeypatch.setattr(passes, "FEWEST", 17)
    monkeypatch.setattr(passes, "ROWS_PER_KEY", 1)
    path, checkpoint = tmp_path / "rows.csv", tmp_path / "m.checkpoint"
    lines = [",".join(str(value) for value in row.values()) for row in ROWS]
    lines[95] = "NO,oops,w1,0,1,1"  # a line that is left out, within a block that is read again
    path.write_text("country,x,word,z,w,y\n" + "\n".join(lines) + "\n")
    options = {"by": "country", "fallback": True, **READING, "block_bytes": 500, "on_error": "skip", "strict": True}
    options = {**options, **extra}
    whole = forel.train(path, **options)
    whole.save(tmp_path / "whole")
    options |= {"checkpoint": checkpoint, "checkpoint_every": 20}
    for stop in stops:

        def interrupt(progress, stop=stop):
            if (progress.pass_number - 1) * 209 + progress.rows > stop:
                raise _Stop

        with pytest.raises(_Stop):
            forel.train(path, progress=interrupt, resume=True, **options)
    seen = []
    resumed = forel.train(path, progress=seen.append, resume=True, **options)
    resumed.save(tmp_path / "resumed")
    assert (tmp_path / "resumed").read_bytes() == (tmp_path / "whole").read_bytes()
    assert (resumed.training.passes, resumed.training.holdout) == (whole.training.passes, whole.training.holdout)
    again = resumed.training
    assert (again.slices, again.rows, again.problems.messages) == (
        whole.training.slices, whole.training.rows, whole.training.problems.messages,
    )  # fmt: skip
    assert len(whole.training.problems.messages) == 1
    assert (seen[0].pass_number - 1) * 209 + seen[0].rows > stops[-1] - 60  # it begins after the last checkpoint
    assert not checkpoint.exists()  # it is removed when the model is saved


KILLED = """
import os, signal, sys
import forel
from forel.learner.kernels import kernel
from forel.store import atomic
from forel.training import passes
kernel.kernel = kernel.uncompiled_kernel
passes.FEWEST, passes.ROWS_PER_KEY = 17, 1
path, checkpoint = sys.argv[1:]

def die(*_):
    os.kill(os.getpid(), signal.SIGKILL)

def train(stop):
    if stop == "writing":  # the second checkpoint is complete, but in place of the first one only after this call
        replace, calls = os.replace, []
        atomic.os.replace = lambda *names: die() if calls else calls.append(replace(*names))
    else:
        forel.train(path, progress=lambda progress: progress.rows > stop and die(), **options)
    forel.train(path, **options)

options = {"settings": forel.Settings(alpha=0.3, l1=0.1), "by": "country", "fallback": True, "label": "y",
           "importance": "w", "bits": 12, "ignore": ["country"], "block_bytes": 500, "checkpoint": checkpoint,
           "checkpoint_every": 20, "resume": True}
for stop in (70, "writing", 130, 190):
    if not (child := os.fork()):
        train(stop)
        os._exit(0)
    print(os.WTERMSIG(os.waitpid(child, 0)[1]), os.path.exists(checkpoint))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.usefixtures("interpreted")
def test_a_killed_run_resumes_to_the_same_bytes(tmp_path, monkeypatch):
    monkeypatch.setattr(passes, "FEWEST", 17)
    monkeypatch.setattr(passes, "ROWS_PER_KEY", 1)
    path, checkpoint = tmp_path / "rows.csv", tmp_path / "m.checkpoint"
    lines = [",".join(map(str, row.values())) for row in ROWS]
    path.write_text("country,x,word,z,w,y\n" + "\n".join(lines) + "\n")
    command = [sys.executable, "-c", KILLED, path, checkpoint]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.stdout.splitlines() == ["9 True"] * 4, done.stderr
    options = {"by": "country", "fallback": True, "settings": ONE, **READING, "block_bytes": 500}
    seen = []
    forel.train(path, checkpoint=checkpoint, checkpoint_every=20, resume=True, progress=seen.append, **options).save(
        tmp_path / "resumed"
    )
    forel.train(path, **options).save(tmp_path / "whole")
    assert (tmp_path / "resumed").read_bytes() == (tmp_path / "whole").read_bytes()
    assert seen[0].rows > 150
    assert sorted(one.name for one in tmp_path.iterdir()) == ["resumed", "rows.csv", "whole"]


@pytest.mark.usefixtures("interpreted")
def test_a_checkpoint_of_models_predicts_and_needs_the_same_options(tmp_path):
    path, checkpoint = tmp_path / "rows.csv", tmp_path / "m.checkpoint"
    lines = [",".join(map(str, row.values())) for row in ROWS]
    path.write_text("country,x,word,z,w,y\n" + "\n".join(lines) + "\n")
    options = {"settings": ONE, "checkpoint": checkpoint, "checkpoint_every": 1, **READING}
    trained = forel.train(path, by="country", **options)
    assert forel.load(checkpoint).predict_many(ROWS[:9]).tolist() == trained.predict_many(ROWS[:9]).tolist()
    for changed, message in (
        ({"by": "word"}, "by: got 'word', expected 'country', as when"),
        ({"by": None}, "by: got None, expected 'country', as when"),
        ({"by": "country", "fallback": True}, "fallback: got True, expected False, as when"),
    ):
        with pytest.raises(ValueError, match=re.escape(message)):
            forel.train(path, resume=True, **options, **changed)


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize("words", [5, 200], ids=["few features", "full filters dropped"])
@pytest.mark.parametrize("settings", [None, ONE], ids=["default", "one setting"])
def test_every_model_is_read_back_saved_resumed_and_continued(tmp_path, monkeypatch, settings, words):
    monkeypatch.setattr(passes, "FEWEST", 60)
    path, options = tmp_path / "rows.csv", {"label": "y", "bits": 12, "by": "key", "settings": settings}
    lines = [f"{'ab'[k % 2]},{' '.join(f'w{(k * 7 + j) % words}' for j in range(6))},{k // 2 % 2}" for k in range(80)]
    lines += [f"{key},{' '.join(f'w{j}' for j in range(words))},1" for key in "ab"]
    path.write_text("key,text,y\n" + "\n".join(lines) + "\n")
    options |= {"text": ["text"], "checkpoint": tmp_path / "c", "checkpoint_every": 30}
    trained = forel.train(path, **options)
    forel.save(tmp_path / "m", trained)
    expected = forel.predict(trained, path)
    np.testing.assert_array_equal(forel.predict(tmp_path / "m", path), expected)
    np.testing.assert_array_equal(forel.predict(forel.train(path, resume=True, **options), path), expected)


@pytest.mark.usefixtures("interpreted")
def test_every_default_model_of_a_file_is_read_back_in_python_and_by_commands(tmp_path):
    path, model, out = (tmp_path / name for name in ("rows.csv", "m.forel", "out.txt"))
    path.write_text("country,x,word,z,w,y\n" + "".join(",".join(map(str, row.values())) + "\n" for row in ROWS))
    trained = forel.train(path, by="country", fallback=True, names=True, **READING)
    trained.save(model)
    loaded, expected = forel.load(model), forel.predict(trained, path)
    assert len(loaded.learner) == 4
    np.testing.assert_array_equal(forel.predict(loaded, path), expected)

    def run(*arguments):
        done = CliRunner().invoke(app, [str(one) for one in arguments])
        assert done.exit_code == 0, done.output
        return done.stdout

    run("predict", path, "--model", model, "--output", out)
    np.testing.assert_allclose(np.loadtxt(out), expected, rtol=1e-5)
    assert json.loads(run("evaluate", path, "--model", model, "--json"))["rows"] == len(ROWS)
    shown = json.loads(run("inspect", model, "--json"))
    assert [one["key"] for one in shown["keys"]] == list(trained.learner)
    for one in shown["keys"]:
        key, own = one["key"], alone(one["key"], names=True, **READING)
        assert one["rows"] == own.learner.rounds
        assert one["non-zeros"] == own.learner.nonzeros
        assert file_bytes(tmp_path, loaded.learner[key]) == file_bytes(tmp_path, own.learner)
        assert json.loads(run("inspect", model, "--key", key, "--json"))["rows"] == one["rows"]
        run("convert", model, "--key", key, "--output", tmp_path / "one")
        rows = [row for row in ROWS if row["country"] == key]
        np.testing.assert_array_equal(forel.predict(tmp_path / "one", rows), forel.predict(own, rows))
    assert "São Tomé" in run("inspect", model)
    assert file_bytes(tmp_path, loaded.learner.fallback) == file_bytes(
        tmp_path, forel.train(path, names=True, features="linear", **READING).learner
    )
