"""The schema of a model: columns, kinds, ranges and missing values; and how other rows differ from it."""

import io
import json
import warnings

import numpy as np
import pyarrow as pa
import pytest
from typer.testing import CliRunner

import forel
from forel.cli.app import app
from forel.learner.settings import Settings

ONE = Settings(alpha=1.0)
RNG = np.random.default_rng(5)
ROWS = [
    {"site": ("news", "shop")[int(RNG.integers(2))], "age": int(RNG.integers(18, 90)), "price": 0.5 * k, "click": k % 2}
    for k in range(120)
]
for row in ROWS[::10]:
    row["age"] = None

pytestmark = pytest.mark.usefixtures("interpreted")


def csv_text(rows=ROWS, names=("site", "age", "price", "click")):
    lines = [",".join("" if row[name] is None else str(row[name]) for name in ROWS[0]) for row in rows]
    return "\n".join([",".join(names), *lines, ""]).encode()


def sources(rows=ROWS):
    return {
        "csv": io.BytesIO(csv_text(rows)),
        "jsonl": io.BytesIO("".join(json.dumps(row) + "\n" for row in rows).encode()),
        "dicts": rows,
        "table": pa.Table.from_pylist(rows),
    }


def train(source=None, **options):
    return forel.train(ROWS if source is None else source, ONE, label="click", bits=12, **options)


def warning(model, source, **options):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        forel.predict(model, source, **options)
    return [str(one.message) for one in caught if one.category is UserWarning]


def test_every_format_has_the_same_schema_which_is_that_of_the_rows():
    ages = [row["age"] for row in ROWS if row["age"] is not None]
    expected = {
        "age": {"kind": "number", "low": min(ages), "high": max(ages), "missing": pytest.approx(0.1)},
        "price": {"kind": "number", "low": 0.0, "high": 59.5, "missing": 0.0},
        "site": {"kind": "category"},
    }
    for source in sources().values():
        trained = train(source)
        assert trained.extra["schema"] == expected
        assert trained.extra["schema"] == trained.extra["schema"]
        assert not warning(trained, ROWS)
    for source in sources().values():
        assert not warning(trained, source)


def test_blocks_resumed_and_continued_runs_have_the_same_schema(tmp_path):
    path, check = tmp_path / "rows.csv", tmp_path / "m.checkpoint"
    path.write_bytes(csv_text())
    whole = train(str(path), block_bytes=400, checkpoint=tmp_path / "other", checkpoint_every=10)

    def stop(progress):
        if progress.rows > 60:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(str(path), block_bytes=400, checkpoint=check, checkpoint_every=10, progress=stop)
    assert (
        train(str(path), block_bytes=400, checkpoint=check, checkpoint_every=10, resume=True).extra["schema"]
        == whole.extra["schema"]
    )
    assert train(str(path), passes=2).extra["schema"] == whole.extra["schema"]
    first = train(ROWS[:70])
    assert forel.train(ROWS[70:], model=first).extra["schema"] == whole.extra["schema"]


def test_other_rows_are_warned_about_once_with_counts():
    model = train()
    odd = [{**ROWS[1], "age": 200}, {**ROWS[1], "age": "old"}, {**ROWS[1], "age": 300}, ROWS[1]]
    low, high = model.extra["schema"]["age"]["low"], model.extra["schema"]["age"]["high"]
    expected = (
        "the rows differ from those of training: 1 of the values of 'age' are words, not numbers; 2 of the values of "
        f"'age' are not from {low:g} to {high:g}, such as 200"
    )
    assert warning(model, odd) == [expected]
    assert warning(model, io.BytesIO(csv_text(odd)), block_bytes=30) == [expected]
    assert warning(model, io.BytesIO("".join(json.dumps(row) + "\n" for row in odd).encode())) == [expected]


def test_few_values_just_beyond_the_range_are_no_difference():
    model = train()
    high = model.extra["schema"]["age"]["high"]
    beyond = [{**ROWS[1], "age": high + 1}] * 3
    assert warning(model, beyond) == []
    assert "3 of the values of 'age'" in warning(model, [*beyond[1:], {**ROWS[1], "age": 3 * high}])[0]
    assert "4 of the values of 'age'" in warning(model, [*beyond, *beyond[:1]])[0]


def test_missing_new_and_renamed_columns():
    model = train()
    renamed = csv_text(names=("Site", "age", "cost", "click"))
    (text,) = warning(model, io.BytesIO(renamed))
    assert text.endswith("column 'price' is missing; column 'site' is missing, and 'Site' is new; column 'cost' is new")
    (text,) = warning(model, pa.Table.from_pylist(ROWS).drop_columns(["site", "click"]))
    assert text.endswith(": column 'site' is missing")
    without = [{name: row[name] for name in ("age", "price")} for row in ROWS]
    assert warning(model, without[:20]) == []  # few rows without a key say nothing
    assert warning(model, without) == ["the rows differ from those of training: column 'site' is missing"]


def test_columns_with_options_are_compared_in_their_units():
    model = train(log=["price"], categories=["age"])
    assert set(model.extra["schema"]) == {"price", "site"}
    (text,) = warning(model, [{**ROWS[1], "price": 1000.0}])
    assert text.endswith("1 of the values of 'price' are not from 0 to 59.5, such as 1000")


def test_strict_refuses_with_the_line():
    model = train()
    cases = {
        csv_text([ROWS[1], {**ROWS[1], "age": 200}]): "line 3, column 'age': got 200, expected a number from",
        csv_text([ROWS[1], {**ROWS[1], "age": "x"}]): "line 3, column 'age': got 'x', expected a number",
        csv_text([ROWS[1]], ("page", "age", "price", "click")): "columns: got .*column 'site' is missing",
    }
    for text, message in cases.items():
        for use in (forel.predict, forel.evaluate):
            with pytest.raises(ValueError, match=message):
                use(model, io.BytesIO(text), strict=True)
    assert forel.predict(model, io.BytesIO(csv_text()), strict=True).size == len(ROWS)


def test_models_without_a_schema_give_no_warning():
    model = train()
    del model.extra["schema"]
    assert warning(model, [{"other": 7}] * 200) == []


@pytest.mark.filterwarnings("default::UserWarning")
def test_commands_warn_on_stderr(tmp_path):
    train().save(tmp_path / "m")
    (tmp_path / "odd.csv").write_bytes(csv_text([{**ROWS[1], "age": 200}]))
    arguments = [str(tmp_path / "odd.csv"), "-i", str(tmp_path / "m")]
    done = CliRunner().invoke(app, ["predict", *arguments])
    assert done.exit_code == 0
    assert done.stderr.startswith(
        "forel: the rows differ from those of training: 1 of the values of 'age' are not from"
    )
    done = CliRunner().invoke(app, ["evaluate", *arguments, "--strict"])
    assert done.exit_code == 2
    assert "line 2, column 'age': got 200" in done.stderr


def test_rows_of_other_names_have_equal_predictions_and_a_warning():
    text = "".join(f"{k % 2} |a x{k % 7} |b y{k % 5}\n" for k in range(200)).encode()
    stored = forel.train(io.BytesIO(text), ONE, format="vw", bits=12)
    other = io.BytesIO(text.replace(b"|a", b"|A").replace(b"|b", b"|B"))
    with pytest.warns(UserWarning, match="^all 200 rows have the same prediction, because none of their features"):
        assert np.ptp(forel.predict(stored, other, format="vw", block_bytes=500)) == 0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        forel.predict(stored, io.BytesIO(text), format="vw")
        forel.predict(stored, io.BytesIO(b"|A x\n|B y\n"), format="vw")  # few rows
        forel.predict(stored, io.BytesIO(b"|A x:2\n" * 200), format="vw")  # equal rows


def test_the_reason_of_equal_predictions_is_what_is_known():
    rows = [{"x": k % 7, "y": k % 2} for k in range(200)]
    constant = forel.train(rows, Settings(alpha=1.0, l1=1e6), label="y", bits=4)
    with pytest.warns(UserWarning, match="^all 200 rows .* prediction, because none of their features has a weight"):
        constant.predict(rows)
    equal = [{"a": "x", "b": "y", "y": k % 2} for k in range(50)]
    model = forel.train(equal, ONE, label="y", bits=12)  # the weights of both columns are equal
    with pytest.warns(UserWarning, match="^all 200 rows have the same prediction, although their features differ$"):
        model.predict([{"a": "x"}, {"b": "y"}] * 100, on_error="skip")


def test_columns_that_were_renamed_since_the_training_before_cause_a_warning():
    rows = [{"age": k % 7, "y": k % 2} for k in range(200)]
    start = forel.train(rows, ONE, label="y", bits=8)
    renamed = [{"Age": row["age"], "y": row["y"]} for row in rows]
    expected = "^the rows differ from those that the model has learned: column 'age' is missing, and 'Age' is new$"
    with pytest.warns(UserWarning, match=expected):
        forel.train(renamed, model=start)
    with warnings.catch_warnings(action="error"):
        forel.train(rows, model=start)


def test_labels_that_lose_digits_in_float32_cause_a_warning():
    numbers = [{"x": k % 3, "y": 10000009.6 if k % 2 else 10000000.4} for k in range(100)]
    squared = Settings("squared", alpha=1.0)
    expected = "^labels: rounding them to the model's float32 changes .* subtract a constant, such as 1000000[09].[46]$"
    with pytest.warns(UserWarning, match=expected):
        forel.train(numbers, squared, label="y", bits=4, shuffle=0)
    less = [{**row, "y": row["y"] - 10000000.4} for row in numbers]
    with warnings.catch_warnings(action="error"):
        forel.train(less, squared, label="y", bits=4, shuffle=0)
