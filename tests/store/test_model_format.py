"""The format of model files: its fields, all of which are required, and arrays; a change of either is noticed."""

import re

import numpy as np
import pytest

import forel
from forel.learner.learner import Learner
from forel.learner.settings import Settings
from forel.store import ModelFileError, files, header, serving_model
from forel.training.model import load, save
from forel.training.scoring import predict_blocks
from tests.files import make
from tests.fuzz.sentences import uncompiled
from tests.store.cases import header_and_arrays, rewritten

COMMON = "bits check dtype estimator extra features format kind rounds settings version written_by"
LEARNER = f"{COMMON} certified classes gradient_lanes weight"
# The fields and arrays of each file of version 1. Whoever changes them, changes the version once there is a release.
CONTENT = {
    "linear": (LEARNER, "state totals"),
    "mixture": (f"{LEARNER} share", "ledger reach state totals"),
    "serving": (f"{COMMON} lanes link mixed", "bias slots weights"),
}
SETTINGS = (
    "algorithm alpha beta bias filters full_filters l1 l2 loss memory penalty_weight radius rate seed"  # in any order
)


@pytest.fixture(autouse=True)
def plain_kernels():
    with uncompiled():
        yield


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    folder = tmp_path_factory.mktemp("written")
    with uncompiled():
        make.write_all(folder)
    return folder


@pytest.fixture
def path(tmp_path):
    model = Learner(4, Settings(alpha=0.7, bias=False))
    model.learn([[1.0, 0.0, 2.0, 0.0]], [1])
    save(tmp_path / "m", model, extra={"a": 1})
    return tmp_path / "m"


@pytest.mark.parametrize("name", CONTENT)
def test_the_fields_and_arrays_of_a_file(written, name):
    fields, arrays = CONTENT[name]
    found, held = header_and_arrays(written / f"{name}.forel")
    assert sorted(found) == sorted(fields.split())
    assert sorted(held) == sorted(arrays.split())
    assert sorted(found["settings"]) == sorted(SETTINGS.split())
    assert (found["version"], found["format"]) == (1, "forel")


def test_the_numbers_of_a_file(path):
    found, held = header_and_arrays(path)
    assert (found["rounds"], found["weight"], found["features"], found["settings"]["alpha"]) == (1, 1.0, 4, 0.7)
    assert held["slots"].tolist() == [0, 2]
    # g = -x/2 at margin 0, and the strength β + √(g²) over α, of features 1.0 and 2.0.
    np.testing.assert_allclose(np.abs(load(path).learner.margins(np.eye(4))[:, 0]), [0.2333, 0, 0.35, 0], atol=1e-3)


@pytest.mark.parametrize("name", [*make.LEARNERS, "trained", "checkpoint", "serving", "serving_float16", "estimator"])
def test_every_kind_of_file_is_read_and_learners_continue(written, name, tmp_path):
    found = make.found(written / f"{name}.forel")
    assert all(np.isfinite(numbers).all() for part, numbers in found.items() if part != "names")
    if name == "checkpoint":
        with (written / "trained.forel").open("rb"):
            whole = make.found(written / "trained.forel")["margins"]
        assert np.allclose(make.resumed(tmp_path, written / "checkpoint.forel"), whole, rtol=1e-4, atol=1e-5)


def test_a_header_holds_the_versions_of_the_format_and_of_forel(path):
    with files.open_file(path) as file:
        assert (file.header["version"], file.header["written_by"]) == (header.VERSION, forel.__version__)


@pytest.mark.parametrize("name", SETTINGS.split())
def test_missing_settings_are_refused(path, name):
    rewritten(path, lambda header: header["settings"].pop(name))
    with pytest.raises(ModelFileError, match=f"m: settings without the field '{name}'; take another copy"):
        load(path)


@pytest.mark.parametrize("kind", CONTENT)
def test_missing_fields_are_refused(written, tmp_path, kind):
    for name in CONTENT[kind][0].split():
        if name in ("check", "format"):  # without which the file is not one of forel, or has no valid checksum
            continue
        path = tmp_path / "m"
        path.write_bytes((written / f"{kind}.forel").read_bytes())
        rewritten(path, lambda header, name=name: header.pop(name))
        sentence = {"version": "no valid version", "kind": "unknown kind None"}.get(name, f"without the field '{name}'")
        with pytest.raises(ModelFileError, match=f"m: .*{sentence}"):
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
    small = serving_model(Learner(3, Settings()))
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
        ({"label": "y"}, "read options without the field 'bits'; take another copy"),
        ({"bits": 3}, "read options of 3 bits for a model of 4 features; take another copy"),
        ({"bits": "3"}, "bits='3', expected a value of its type"),
        (3, "model: got 3, expected reading options by name"),
    ],
)
def test_invalid_read_options_are_refused(path, reading, message):
    save(path, load(path).learner, extra={"reading": reading})
    with pytest.raises(ValueError, match=re.escape(message)):
        list(predict_blocks(load(path), [{"x": 1.0}]))


def test_newer_files_are_refused(path):
    rewritten(path, lambda header: header.update(version=header["version"] + 1, written_by="9.1", check_kind="sha"))
    here = f"this is forel {forel.__version__}, which reads version {header.VERSION}; update forel"
    with pytest.raises(ModelFileError, match=rf"m: a model file of version 2, written by forel 9\.1; {here}"):
        load(path)
