"""Arrays as sources: numpy, scipy sparse of both kinds, and frames with labels beside them give the same examples."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse

import forel
from forel.data import read
from forel.learner.settings import Settings

RNG = np.random.default_rng(0)
X = np.where(RNG.random((60, 5)) < 0.5, RNG.normal(size=(60, 5)), 0.0)
X[3, 1] = 0.5
Y = (X[:, 0] - X[:, 1] > 0).astype(int)
W = 1.0 + np.arange(60) % 3
NAMES = [f"c{k}" for k in range(1, 6)]
FRAME = pd.DataFrame(X, columns=NAMES)
SOURCES = {
    "numpy": X,
    "float32, Fortran": np.asfortranarray(X.astype(np.float32)),
    "sparse array": sparse.csr_array(X),
    "sparse matrix": sparse.csr_matrix(X),
    "other format": sparse.coo_array(X),
    "columns": sparse.csc_matrix(X),
    "pandas": FRAME.set_index(np.arange(60)[::-1]),
    "polars": pl.DataFrame(X, schema=NAMES),
}


def with_value(value):
    changed = X.copy()
    changed[3, 1] = value
    return changed


def csv(tmp_path):
    """The same examples as a file without a header, which knows nothing of arrays."""
    rows = [",".join(repr(float(np.float32(v))) for v in row) for row in np.column_stack([X, Y, W])]
    (tmp_path / "a.csv").write_text("\n".join(rows) + "\n")
    return read(str(tmp_path / "a.csv"), label="c6", importance="c7", header=False, bits=8, names=True)


def examples(reader):
    """Labels, importances and nonzero values by name."""
    blocks = list(reader)
    names = reader.names
    rows = [
        {names[int(k)]: float(v) for k, v in zip(b.indices[lo:hi], b.values[lo:hi], strict=True) if v}
        for b in blocks
        for lo, hi in zip(b.indptr[:-1], b.indptr[1:], strict=True)
    ]
    return rows, [v for b in blocks for v in b.labels.tolist()], [v for b in blocks for v in b.importance.tolist()]


@pytest.mark.parametrize("kind", SOURCES)
def test_every_kind_of_array_has_the_examples_of_a_file_without_a_header(kind, tmp_path, monkeypatch):
    monkeypatch.setattr("forel.data.parsers.arrow_batches.ROWS", 7)
    assert examples(read((SOURCES[kind], Y, W), bits=8, names=True)) == examples(csv(tmp_path))


def test_labels_are_words_or_series_and_columns_share_slots():
    words = np.array(["no", "yes"])[Y]
    for labels in (words, words.tolist(), pd.Series(words, index=np.arange(60)[::-1]), pl.Series(words)):
        for source in (X, sparse.csr_array(X)):
            found = examples(read((source, labels), bits=8, names=True))
            assert found[1] == Y.tolist()
    few = [read((source, Y), bits=1) for source in (X, sparse.csr_array(X))]
    first, second = ([b.matrix(2).toarray().tolist() for b in reader] for reader in few)
    assert np.allclose(first, second, atol=1e-6)


def test_models_are_trained_evaluated_and_used_on_arrays(interpreted):
    settings = Settings(alpha=1.0)
    trained = forel.train((sparse.csr_array(X), np.array(["no", "yes"])[Y]), settings, bits=8)
    dense = forel.train((X, Y), settings, bits=8)
    assert trained.report.loss == dense.report.loss
    assert forel.predict(trained, X).tolist() == forel.predict(dense, sparse.csr_matrix(X)).tolist()
    assert forel.evaluate(trained, (X, np.array(["no", "yes"])[Y])).report.rows == 60
    assert trained.predict_many(X)[:3] == pytest.approx(forel.predict(dense, X)[:3])
    lazy = forel.train(FRAME.assign(y=Y), settings, label="y", bits=8)
    other = forel.train(pl.from_pandas(FRAME.assign(y=Y)).lazy(), settings, label="y", bits=8)
    assert lazy.report.loss == other.report.loss == dense.report.loss


def test_categories_of_frames_are_categories():
    codes = [3, 1, 3, 2]
    for source in (
        pd.DataFrame({"zip": pd.Categorical(codes), "y": [1, 0, 1, 0]}),
        pd.DataFrame({"zip": pd.Series(codes, dtype="category"), "y": [1, 0, 1, 0]}),
        pl.DataFrame({"zip": pl.Series(map(str, codes), dtype=pl.Categorical), "y": [1, 0, 1, 0]}),
        pl.DataFrame({"zip": pl.Series(map(str, codes), dtype=pl.Enum(["1", "2", "3"])), "y": [1, 0, 1, 0]}),
    ):
        rows, _, _ = examples(read(source, label="y", bits=8, names=True))
        assert rows == [{f"zip^{code}": 1.0} for code in codes]


@pytest.mark.parametrize(
    ("source", "options", "message"),
    [
        ((X, Y[:5]), {}, "y: got '5 values', expected one for each of 60 rows"),
        ((sparse.csr_array(X), Y, W[:5]), {}, "w: got '5 values', expected one for each of 60 rows"),
        ((X[0], Y), {}, r"X: got an array of shape \(5,\), expected two dimensions"),
        ((with_value(np.inf), Y), {}, "array, line 4, column 'c2': got inf, expected a number"),
        ((sparse.csr_array(with_value(np.inf)), Y), {}, "array, line 4, column 'c2': got inf, expected"),
        ((sparse.csr_array(X), Y), {"ignore": ["c2"]}, "ignore: got .*, expected none for sparse arrays"),
        ((sparse.csr_array(X), Y), {"interactions": ["a*b"]}, "interactions: got 'crosses', expected none for sparse"),
    ],
)
def test_what_cannot_be_read_is_refused_by_its_place(source, options, message):
    with pytest.raises(ValueError, match=message):
        list(read(source, bits=8, **options))


def test_rows_that_are_malformed_can_be_skipped():
    wrong = with_value(np.inf)
    for source in (wrong, sparse.csr_array(wrong)):
        reader = read((source, Y), bits=8, on_error="skip", names=True)
        rows, labels, _ = examples(reader)
        assert labels == np.delete(Y, 3).tolist()
        assert len(rows) == 59
    holes = with_value(np.nan)  # missing, as an empty cell is
    rows, _, _ = examples(read((holes, Y), bits=8, names=True))
    assert "c2" not in rows[3]
