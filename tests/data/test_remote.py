"""Files by URL: the same rows and models as by path, on local file systems and on one with another root."""

import gzip

import pyarrow as pa
import pyarrow.fs
import pyarrow.parquet as pq
import pytest

import forel
from forel.data import concatenate, read
from forel.data.pieces import pieces_of, read_piece
from forel.data.sources import files
from forel.data.sources.files import fingerprints
from forel.learner.settings import Settings

LINES = [f"{k % 2} |a x:{k % 5} w{k % 7}\n" for k in range(200)]


@pytest.fixture
def folder(tmp_path):
    text = "".join(LINES)
    (tmp_path / "a1.vw").write_text(text)
    (tmp_path / "a10.vw").write_text(text[: len(text) // 2 + 3])
    (tmp_path / "a2.vw.gz").write_bytes(gzip.compress(text.encode()))
    (tmp_path / "b.csv").write_text("y,x,w\n" + "".join(f"{k % 2},{k % 5},w{k % 7}\n" for k in range(200)))
    columns = {"y": [k % 2 for k in range(200)], "x": [k % 5 for k in range(200)]}
    pq.write_table(pa.table(columns), tmp_path / "c.parquet")
    (tmp_path / "deeper").mkdir()
    (tmp_path / "deeper" / "a3.vw").write_text(text)
    return tmp_path


def rows_of(source, **options):
    block = concatenate(read(source, bits=10, **options))
    return [block.indices.tolist(), block.values.tolist(), block.labels.tolist()]


@pytest.mark.parametrize(("name", "options"), [
    ("a1.vw", {}), ("a2.vw.gz", {}), ("b.csv", {"label": "y"}), ("c.parquet", {"label": "y"}),
])  # fmt: skip
def test_a_url_has_the_rows_of_its_file(folder, name, options):
    assert rows_of(f"file://{folder}/{name}", **options) == rows_of(folder / name, **options)


@pytest.mark.parametrize("pattern", ["a*.vw", "a[12]*", "*/a?.vw", "b.csv"])
def test_patterns_match_as_those_of_paths_do(folder, pattern):
    found = files.expand_paths(f"file://{folder}/{pattern}")
    assert sorted(found) == sorted(f"file://{path}" for path in folder.glob(pattern) if path.is_file())
    assert rows_of(f"file://{folder}/a*.vw") == rows_of(f"{folder}/a*.vw")  # in natural order


@pytest.fixture
def bucket(folder, monkeypatch):
    """A store whose root is a folder, as in s3://bucket/key."""
    system = pyarrow.fs.SubTreeFileSystem(str(folder), pyarrow.fs.LocalFileSystem())
    monkeypatch.setattr(files, "_located", lambda url: (system, url.removeprefix("s3://")))
    return "s3://"


@pytest.mark.usefixtures("interpreted")
def test_training_from_a_store_gives_the_same_model_and_resumes(folder, bucket, tmp_path):
    settings, options = Settings(alpha=0.3), {"bits": 10, "block_bytes": 600}
    alone = forel.train(folder / "deeper" / "a3.vw", settings, **options)
    url = f"{bucket}deeper/a*.vw"

    class StoppedError(Exception):
        pass

    def stop(progress):
        if progress.rows > 100:
            raise StoppedError

    saving = {"checkpoint": tmp_path / "c", "checkpoint_every": 50}
    with pytest.raises(StoppedError):
        forel.train(url, settings, progress=stop, **saving, **options)
    assert fingerprints(url)[0][:2] == ["s3://deeper/a3.vw", (folder / "deeper" / "a3.vw").stat().st_size]
    resumed = forel.train(url, settings, resume=True, **saving, **options)
    for trained, name in ((alone, "one"), (resumed, "other")):
        forel.save(tmp_path / name, trained.learner)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "other").read_bytes()


def test_pieces_of_a_store_are_files_that_workers_read(bucket):
    pieces = list(pieces_of(read(f"{bucket}a1.vw", bits=10)))
    assert len(pieces) == 1
    blocks = [parsed.block for piece in pieces for parsed in read_piece(piece) if parsed.block is not None]
    assert sum(map(len, blocks)) == 200
    assert concatenate(blocks).indices.tolist() == rows_of(f"{bucket}a1.vw")[0]


@pytest.mark.parametrize(("url", "error", "message"), [
    ("file://{}/none.vw", FileNotFoundError, "source: got 'file://.*/none.vw', expected a file that is there"),
    ("file://{}/x*.vw", FileNotFoundError, "expected a pattern of files that are there"),
    ("file://{}/deeper", ValueError, "expected a file; for all files of a folder add /*"),
    ("nowhere://a/b.vw", ValueError, "got 'nowhere://a/b.vw', expected a URL of a file system that pyarrow knows"),
])  # fmt: skip
def test_urls_without_files_are_sentences(folder, url, error, message):
    with pytest.raises(error, match=message):
        list(read(url.format(folder)))
