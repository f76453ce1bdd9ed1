"""Model files of every version are read, or refused with an error that names the version of forel that wrote them."""

import json
import pathlib
import zlib

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import save_file

import forel
from forel.learner.layout import SUMS
from forel.learner.linear import Linear, Settings
from forel.sklearn import estimator_of
from forel.store import ModelFileError, files, load, save, serving_model, versions
from forel.store.header import settings_to_json
from forel.training.scoring import predict_blocks
from tests.files import make
from tests.fuzz.sentences import uncompiled

FOLDERS = sorted(make.HERE.glob("v*"))
STORED = [path for folder in FOLDERS for path in sorted(folder.glob("*.forel"))]
EXPECTED = {folder: json.loads((folder / "expected.json").read_text()) for folder in FOLDERS}


@pytest.fixture(autouse=True)
def plain_kernels():
    with uncompiled():
        yield


def close(mine, theirs):
    assert np.shape(mine) == np.shape(theirs)
    assert np.allclose(mine, theirs, rtol=1e-4, atol=1e-5)


def name_of(path):
    return f"{path.parent.name}/{path.name}"


def test_files_of_the_current_version_exist():
    assert make.HERE / f"v{versions.VERSION}" in FOLDERS
    assert {path.name for path in STORED} >= {f"{name}.forel" for name in make.LEARNERS}


@pytest.mark.parametrize("path", STORED, ids=name_of)
def test_a_stored_file_predicts_as_before_and_continues(path):
    found, expected = make.found(path), EXPECTED[path.parent][path.name]
    for part, numbers in found.items():
        if part == "names":
            assert numbers == expected[part]
        else:
            close(numbers, expected[part])


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_training_resumes_from_a_stored_checkpoint(folder, tmp_path):
    close(make.resumed(tmp_path, folder / "checkpoint.forel"), EXPECTED[folder]["checkpoint.forel"]["resumed"])


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_a_stored_estimator_has_its_classes(folder):
    assert estimator_of(load(folder / "estimator.forel")).classes_.tolist() == ["eggs", "ham", "spam"]


def arrays_of(path):
    with safe_open(path, framework="numpy") as file:
        header = json.loads(file.metadata()["forel"])
        arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    return {k: v for k, v in header.items() if k not in ("check", "checks", "written_by")}, arrays


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    folder = tmp_path_factory.mktemp("written")
    with uncompiled():
        make.write_all(folder)
    return folder


@pytest.mark.parametrize("version", [3, versions.VERSION])  # states of earlier versions have other units
def test_the_same_rows_give_the_files_of_before(written, version):
    for path in (make.HERE / f"v{version}").glob("*.forel"):
        if path.stem in ("trained", "checkpoint"):
            continue  # which have times
        (header, arrays), (before, stored) = arrays_of(written / path.name), arrays_of(path)
        migrated = versions.migrate(before)
        before = {name: migrated[name] for name in before}
        if header["estimator"] is not None:  # which has parameters that it did not have before
            now, then = header["estimator"], before["estimator"]
            known = {name: value for name, value in now.items() if name in then}
            header["estimator"] = {**known, "unset": [name for name in now["unset"] if name in then["unset"]]}
        if "adaptive_rate" not in before:
            header.pop("adaptive_rate", None)
        for name in header["settings"].keys() - before["settings"].keys():  # of later versions, with their defaults
            assert header["settings"].pop(name) == settings_to_json(Settings())[name]
        assert header == before
        if header.get("certified") and "dual" not in stored:
            arrays.pop("dual")  # further sums of certificates, which files may lack
        assert {name: (a.dtype, a.shape) for name, a in arrays.items()} == {
            name: (a.dtype, a.shape) for name, a in stored.items()
        }
        if "totals" in arrays:  # the sample of ΣΣ g_{1:t}² was drawn from other coordinates when the files were written
            for each in (arrays, stored):
                each["totals"] = np.delete(each["totals"].reshape(SUMS, -1), 4, axis=0)
        for name, array in arrays.items():
            # Exponentials of processors differ in the last place.
            np.testing.assert_allclose(array.astype(float), stored[name].astype(float), rtol=1e-5, atol=1e-6)
            assert np.array_equal(array == 0, stored[name] == 0)


def test_stored_files_are_small():
    assert sum(path.stat().st_size for path in STORED) < 300_000 * len(FOLDERS)


# Headers of other versions


def rewritten(path, change):
    """Change a header and make its own check right again."""
    with safe_open(path, framework="numpy") as file:
        header = json.loads(file.metadata()["forel"])
        arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    change(header)
    header.pop("check")
    header["check"] = zlib.crc32(files.canonical_json(header).encode())
    save_file(arrays, path, {"forel": files.canonical_json(header)})


@pytest.fixture
def path(tmp_path) -> pathlib.Path:
    model = Linear(3, Settings(alpha=0.7, bias=False))
    model.learn([[1.0, 0.0, 2.0]], [1])
    save(tmp_path / "m", model, extra={"a": 1})
    return tmp_path / "m"


def test_a_header_holds_the_versions_of_the_format_and_of_forel(path):
    with files.open_file(path) as file:
        assert (file.header["version"], file.header["written_by"]) == (versions.VERSION, forel.__version__)


@pytest.mark.parametrize("name", [field for field in Settings.__dataclass_fields__ if field != "alpha"])
def test_missing_settings_have_their_defaults(path, name):
    before = load(path).model.settings
    rewritten(path, lambda header: header["settings"].pop(name, None))
    if name == "bias":  # which the file was written without, and which is the default
        assert load(path).model.settings == Settings(alpha=0.7)
    else:
        assert load(path).model.settings == before


def test_missing_header_fields_have_their_defaults(path):
    rewritten(path, lambda header: [header.pop(name) for name in ("extra", "estimator", "bits")])
    assert load(path).extra == {}
    rewritten(path, lambda header: header.pop("rounds"))
    with pytest.raises(ModelFileError, match="m: not a complete model file"):
        load(path)


def test_unknown_fields_are_refused(path):
    rewritten(path, lambda header: header.update(written_by="9.1"))
    rewritten(path, lambda header: header["settings"].update(momentum=0.9))
    with pytest.raises(ModelFileError, match=r"settings with an unknown field 'momentum'; .* forel 9\.1"):
        load(path)
    rewritten(path, lambda header: header["settings"].pop("momentum"))
    rewritten(path, lambda header: header.update(topology="ring"))
    with pytest.raises(ModelFileError, match=r"a header with an unknown field 'topology'; .* forel 9\.1"):
        load(path)
    small = serving_model(Linear(3, Settings()))
    save(path, small)
    rewritten(path, lambda header: header["settings"].update(momentum=0.9))
    with pytest.raises(ModelFileError, match="unknown field 'momentum'"):
        load(path)


@pytest.mark.parametrize(
    ("reading", "message"),
    [
        ({"bits": 2, "tokens": "bytes"}, "tokens='bytes', expected one of this version; update forel"),
        ({"bits": 2, "ignore": 3}, "ignore=3, expected a value of its type"),
        ({"bits": 2, "kinds": 1}, "kinds=1, expected a value of its type"),
        ({"bits": 2, "kinds": {"x": "sound"}}, "kinds: got 'sound' for 'x'"),
        (3, "model: got 3, expected reading options by name"),
    ],
)
def test_unknown_read_options_are_refused(path, reading, message):
    save(path, load(path).model, extra={"reading": reading})
    with pytest.raises(ValueError, match=message):
        list(predict_blocks(load(path), [{"x": 1.0}]))


def test_newer_files_are_refused(path):
    rewritten(path, lambda header: header.update(version=versions.VERSION + 1, written_by="9.1", check_kind="sha"))
    here = f"this is forel {forel.__version__}, which reads versions up to {versions.VERSION}; update forel"
    with pytest.raises(
        ModelFileError, match=rf"m: a model file of version {versions.VERSION + 1}, written by forel 9\.1; {here}"
    ):
        load(path)


def test_serving_models_of_version_1_are_read_and_learners_are_refused(path):
    model = load(path).model

    def older(header):
        header.pop("written_by")
        header["version"] = 1

    rewritten(path, older)
    with pytest.raises(
        ModelFileError, match="m: a learner of version 1, whose state differs from that of version 4; train again"
    ):
        load(path)
    save(path, serving_model(model))
    rewritten(path, older)
    assert np.allclose(load(path).model.margins([[1.0, 0.0, 2.0]]), model.margins([[1.0, 0.0, 2.0]]))


def test_fields_of_version_3_are_renamed_wherever_they_are_valid():
    header = {"version": 3, "kind": "trainer", "settings": {}}
    checkpoint = {"told": {"bits": 3}, "turn": 2, "first": [9, 5], "negative": -1.0, "rows": 7}
    found = versions.migrate(
        {**header, "extra": {"checkpoint": checkpoint, "told": 1}, "estimator": {"unsaid": ["l1"]}}
    )
    renamed = {"fingerprint": {"bits": 3}, "pass_number": 2, "first_pass": [9, 5], "negative_label": -1.0, "rows": 7}
    assert found["extra"] == {"checkpoint": renamed, "told": 1}
    assert found["estimator"] == {"unset": ["l1"]}
    for extra, estimator in ((None, None), (3, "x"), ({"checkpoint": [1]}, [2]), ({}, {})):
        found = versions.migrate({**header, "extra": extra, "estimator": estimator})
        assert (found["extra"], found["estimator"]) == (extra, estimator)


def test_every_older_version_has_a_migration():
    assert sorted(versions.MIGRATIONS) == list(range(1, versions.VERSION))
