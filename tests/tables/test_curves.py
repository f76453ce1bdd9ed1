"""Curves and pairs of columns: features by a twin in numpy, odd columns, and what is stored."""

from itertools import product

import numpy as np
import pytest

from forel.data.compiled import curves as uncompiled
from forel.data.features.curves import HASHED, MOST, Curves
from forel.jit import uncompiled as plain

A, B, C, RED, BLUE, RARE = 40, 7, 90, 3, 55, 61  # slots


def table(rows=600, seed=0):
    """Rows with a column of numbers, one of whole numbers with missing values, a constant one, and categories."""
    rng = np.random.default_rng(seed)
    entries = []
    for k in range(rows):
        row = {A: rng.normal(), C: 4.0, RED if rng.random() < 0.4 else BLUE: 1.0}
        if rng.random() < 0.8:
            row[B] = float(rng.integers(0, 4))
        if k == 17:
            row[RARE] = 1.0
        entries.append(row)
    indptr = np.cumsum([0, *map(len, entries)])
    indices = np.array([slot for row in entries for slot in row])
    values = np.float32([value for row in entries for value in row.values()])
    return entries, (indptr, indices, values)


def rank(knots, value):
    """How many knots are below a value, with fractions."""
    return float(np.interp(value, knots, np.arange(len(knots)))) if len(knots) > 1 else 0.0


def hats(place, count):
    """The hat functions on 0, 1, ..., count - 1."""
    return np.maximum(0, 1 - np.abs(place - np.arange(count)))


def twin(curves, row):
    """The features of a row, a dict from slots to values, without the hashed ones."""
    ends, parts, elements = np.cumsum(curves.sizes), [np.ones(1)], []
    for k, slot in enumerate(curves.columns.tolist()):
        knots = curves.knots[ends[k] - curves.sizes[k] : ends[k]]
        value = row.get(slot, 0.0 if curves.zeros else None)
        if value is None:
            parts += [np.zeros(1 + len(knots)), np.ones(1)]
            elements.append(np.zeros)
            continue
        reach = knots[-1] - knots[0]
        line = np.clip((np.float32(value) - knots[0]) / reach, -0.5, 1.5) - 0.5 if reach else -0.5
        place = rank(knots, np.float32(value))
        parts += [np.array([line]), hats(place, len(knots)), np.zeros(1)]
        part = place / max(len(knots) - 1, 1)
        elements.append(lambda count, part=part: hats(part * count, count + 1)[1:])
    for slot in curves.categories.tolist():
        parts.append(np.array([row.get(slot, 0.0)]))
        elements.append(lambda count, own=parts[-1]: own)
    for (a, b), (m, n) in zip(curves.pairs.tolist(), curves.grids.tolist(), strict=True):
        parts.append(np.outer(elements[a](m), elements[b](n)).ravel())
    return np.concatenate(parts)


def dense(curves, rows):
    """Features as a dense array, by the compiled function."""
    indptr, indices, values = curves.expand(*rows)
    out = np.zeros((len(indptr) - 1, curves.features))
    owners = np.repeat(np.arange(len(out)), np.diff(indptr))
    np.add.at(out, (owners, indices), values)
    assert len(set(zip(owners.tolist(), indices.tolist(), strict=True))) == len(indices)  # none is repeated
    return out


@pytest.mark.parametrize("zeros", [False, True])
def test_features_are_those_of_the_definition(zeros):
    entries, rows = table()
    curves = Curves.of(rows, [A, B, C], zeros=zeros)
    assert set(curves.categories.tolist()) == {RED, BLUE}
    assert len(curves.pairs) == 1 + 2 * 2  # two columns, and each with two categories, which exclude one another
    beyond = [{A: 50.0, B: -7.0, RED: 1.0}, {A: -2.0}, {C: 5.0, B: 2.0}, {RARE: 1.0}, {}]
    given = entries[:200] + beyond
    cells = [(slot, value) for row in given for slot, value in row.items()]
    indptr = np.cumsum([0, *map(len, given)])
    more = indptr, np.array([slot for slot, _ in cells]), np.float32([value for _, value in cells])
    found = dense(curves, more)
    expected = np.array([twin(curves, row) for row in given])
    np.testing.assert_allclose(found[:, : curves.width], expected, atol=1e-6)
    assert np.abs(found).max() <= 1
    assert found[-2, curves.width :].sum() == 1  # a rare category is hashed
    assert len(curves.owners) == curves.width


def test_uncompiled_features_have_the_same_bits():
    _, rows = table(60)
    curves = Curves.of(rows, [A, B, C])
    found = curves.expand(*rows)
    out = np.empty(61, np.int64), np.empty(9999, np.int32), np.empty(9999, np.float32)
    given = rows[0].astype(np.int64), rows[1].astype(np.int64), rows[2]
    count = plain(uncompiled.expand)(*given, *curves._tables, *out)
    for one, other in zip((out[0], out[1][:count], out[2][:count]), found, strict=True):
        np.testing.assert_array_equal(one, other)


def test_packed_curves_are_the_same():
    _, rows = table()
    curves = Curves.of(rows, [A, B, C])
    again = Curves.unpack(curves.pack())
    for one, other in zip(curves.expand(*rows), again.expand(*rows), strict=True):
        np.testing.assert_array_equal(one, other)
    for bad in (curves.pack()[:-1], np.zeros(3)):
        with pytest.raises(ValueError, match="curves: got"):
            Curves.unpack(bad)


@pytest.mark.parametrize(
    "values",
    [[3.0] * 50, [1.0], [np.nan] * 50, [], [2.0**53, 2.0**53 + 2] * 20, [1e38, -1e38, 0.0] * 9, [1e-45, 0.0] * 9],
)
def test_odd_columns_have_finite_features(values):
    values = np.array([value for value in values if value == value], np.float32)
    rows = np.arange(len(values) + 1), np.full(len(values), A), values
    curves = Curves.of(rows, [A])
    if not len(values):
        assert curves is None
        return
    found = dense(curves, rows)
    assert np.isfinite(found).all()
    assert np.abs(found).max() <= 1
    np.testing.assert_allclose(found[:, 2 : 2 + curves.sizes[0]].sum(axis=1), 1)  # hat functions


def test_columns_of_codes_are_categories_too():
    rng = np.random.default_rng(1)
    codes, numbers = rng.integers(0, 90, 1000), rng.normal(size=1000)
    values = np.float32(np.column_stack((codes, numbers))).ravel()
    rows = np.arange(0, 2001, 2), np.tile([A, B], 1000), values
    curves = Curves.of(rows, [A, B])
    assert curves.codes.tolist() == [1, 0]
    hashed = dense(curves, rows)[:, curves.width :]
    assert hashed.shape[1] == 1 << HASHED
    first = {code: hashed[k].argmax() for k, code in enumerate(codes.tolist())}
    assert all(hashed[k].sum() == 1 and hashed[k].argmax() == first[code] for k, code in enumerate(codes.tolist()))
    assert len(set(first.values())) == 90


@pytest.mark.parametrize(("columns", "fewest"), [(5, 300), (12, 300), (30, 300), (60, 100)])
def test_features_are_within_their_number(columns, fewest):
    rng = np.random.default_rng(2)
    values = rng.normal(size=(500, columns)).astype(np.float32)
    rows = np.arange(0, values.size + 1, columns), np.tile(np.arange(columns), 500), values.ravel()
    assert fewest < Curves.of(rows, range(columns)).width <= 1024
    wide = np.arange(0, 3001, 1500), np.tile(np.arange(1500), 2), np.ones(3000, np.float32)
    assert Curves.of(wide, range(1500)) is None


def test_grids_fit_and_columns_of_two_values_leave_more_to_others():
    rng, rows = np.random.default_rng(0), 500
    columns = list(range(12))
    values = np.float32(rng.normal(size=(rows, 12)))
    values[:, 3] = values[:, 3] > 0
    curves = Curves.of((np.arange(0, 12 * rows + 1, 12), np.tile(columns, rows), values.ravel()), columns)
    assert curves.width <= MOST
    assert len(curves.pairs) == 12 * 11 // 2
    for pair, grid in zip(curves.pairs.tolist(), curves.grids.tolist(), strict=True):
        assert sorted(grid) == ([1, 8] if 3 in pair else [2, 4])


def test_pairs_of_grids_are_products():
    """The product of two piecewise-linear functions is linear in the features of a pair and its columns."""
    grid = np.linspace(0, 1, 9)
    points = np.float32(list(product(grid, grid)))
    rows = np.arange(0, points.size + 1, 2), np.tile([A, B], len(points)), points.ravel()
    found = dense(Curves.of(rows, [A, B]), rows)
    target = np.abs(points[:, 0] - 0.5) * points[:, 1]
    residual = np.linalg.lstsq(found, target, rcond=None)[1]
    assert residual.size == 0 or residual[0] < 1e-8
