"""Learners, rows and files that the tests of model files share."""

import io
import json
import zlib

import numpy as np
from safetensors import safe_open
from safetensors.numpy import save_file

from forel.data import read
from forel.learner.learner import Learner
from forel.learner.settings import Settings
from forel.store import header as header_fields

N = 6


def stream(rounds=8, features=N, classes=2, seed=0):
    rng = np.random.default_rng(seed)
    dense = rng.normal(size=(rounds, features)) * (rng.random((rounds, features)) < 0.4)
    dense[:, -1] = 0.0  # a feature that is never seen
    return dense, rng.integers(classes, size=rounds)


def parts(model):
    lanes = model.state
    arrays = (lanes.records, lanes.scales, lanes.last_round, lanes.totals)
    return [a.tobytes() for a in arrays] + [lanes.rounds, model.settings, model.classes, model.certified, model.dtype]


def learned(features=N, options=Settings(), classes=None, rounds=8, **keywords):  # noqa: B008
    model = Learner(features, options, classes, **keywords, mixed=False)
    dense, labels = stream(rounds, features, classes or 2)
    model.learn(dense, 2 * labels - 1 if classes is None and options.signed else labels)
    return model


def header_and_arrays(path):
    """Return the header of a file as JSON, and its arrays."""
    with safe_open(path, framework="numpy") as f:
        header = json.loads(f.metadata()["forel"])
        return header, {name: f.get_tensor(name) for name in f.keys() if name != "checks"}  # noqa: SIM118


def rewritten(path, change, arrays=None):
    """Write a file once more with another header, whose own check is right again."""
    header, held = header_and_arrays(path)
    held.update(arrays or {})
    change(header)
    header.pop("check", None)
    header["check"] = zlib.crc32(header_fields.canonical_json(header).encode())
    held["checks"] = np.array([zlib.crc32(held[name].tobytes()) for name in sorted(held)], np.uint32)
    save_file(held, path, {"forel": header_fields.canonical_json(header)})


def user_loss(margin, label):
    return 0.5 * (margin - label) ** 2, margin - label


def reader_of(block_bytes):
    lines = b"".join(b"1 |a x%d y\xff%d\n" % (k % 40, k) for k in range(100))
    reader = read(io.BytesIO(lines), bits=12, names=True, block_bytes=block_bytes)
    list(reader)
    return reader.names
