"""Numbers written by compiled code: the text of Python's own formatting, byte for byte."""

import io

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forel.cli.predict import prediction_writer
from forel.data import read
from forel.data.writers import number_lines
from forel.jit.deferred import AT_ONCE


@pytest.fixture(autouse=True, scope="module")
def _compiled_at_once():
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(AT_ONCE, "1")
        yield


def expected(values):
    return "".join(f"{value:.6g}\n" for value in np.asarray(values).tolist())


@given(st.lists(st.floats() | st.floats(0, 1) | st.floats(width=32) | st.integers(-(10**9), 10**9).map(float)))
@settings(max_examples=300, deadline=None)
def test_generated_numbers(values):
    assert number_lines(values) == expected(values)


def test_many_numbers():
    rng = np.random.default_rng(0)
    uniform = rng.random(100_000)
    wide = rng.standard_normal(50_000) * 10.0 ** rng.integers(-320, 300, 50_000)
    short = rng.integers(0, 10**7, 50_000) / 10.0 ** rng.integers(0, 9, 50_000)
    for values in (uniform, uniform.astype(np.float32), wide, short, -short, short.astype(np.float32)):
        assert number_lines(values) == expected(values)


def test_edges():
    powers = [10.0**k for k in range(-310, 309)]
    near = [np.nextafter(p, side) for p in powers for side in (0, np.inf)]
    ties = [1234565.0, 1234575.0, 123456.5, 12345.65, 0.0001234565, 999999.5, 9999995.0, 0.5, 2.5, 2.0**-20, 2.0**40]
    special = [0.0, -0.0, np.nan, -np.nan, np.inf, -np.inf, 5e-324, 1.7976931348623157e308, 999999.49999999994]
    values = [*powers, *near, *ties, *special, *(-v for v in (*powers, *ties))]
    assert number_lines(values) == expected(values)
    assert number_lines([]) == ""


@pytest.mark.parametrize("lines", [b"1 |a x\n-1 |a y\n", b"1 'one|a x\n-1 |a y\n1 three|a z\n"])
def test_predictions_with_tags(lines, capsys):
    (block,) = read(io.BytesIO(lines), "vw", tags=True)
    assert block.tags == tuple({b"1 |a x": b"", b"1 'one|a x": b"one", b"-1 |a y": b"", b"1 three|a z": b"three"}[line]
                               for line in lines.splitlines())  # fmt: skip
    values = np.float32([0.1, 1 / 3, 2e-7])[: len(block)]
    with prediction_writer("-") as write:
        write(block, values)
    words = (f"{value:.6g} {tag.decode()}".rstrip() for value, tag in zip(values.tolist(), block.tags, strict=True))
    assert capsys.readouterr().out == "".join(f"{word}\n" for word in words)
