"""Every kind of model that training can write, with default settings, is read back through every interface."""

import numpy as np
import pytest

import forel
from forel.sklearn import estimator_of

pytestmark = [
    pytest.mark.usefixtures("interpreted"),
    pytest.mark.filterwarnings("ignore::forel.training.label_order.LabelOrderWarning"),
]

ROWS = [
    {"x": (k * 7 % 11) / 4 - 1, "site": "uvw"[k % 3], "key": "ab"[k % 2], "y": k % 2, "n": k % 5, "name": "rst"[k % 3]}
    for k in range(60)
]
KINDS = {
    "default": {"label": "y"},
    "certified": {"label": "y", "certificate": True},
    "drifting": {"label": "y", "fixed_share": 0.01},
    "numbers": {"label": "n", "loss": "squared"},
    "counts": {"label": "n", "loss": "poisson"},
    "hinge": {"label": "y", "loss": "hinge"},
    "softmax": {"label": "name", "loss": "softmax"},
    "names": {"label": "y", "names": True},
    "by key": {"label": "y", "by": "key"},
    "one setting": {"label": "y", "settings": forel.Settings(alpha=0.5)},
}


class Stopped(Exception):
    """Training ends here, as if the power had failed."""


@pytest.mark.parametrize("kind", KINDS)
def test_models_of_every_kind_are_read_and_resumed(kind, tmp_path):
    options = {"bits": 6, "passes": 2, **KINDS[kind]}
    trained = forel.train(ROWS, **options)
    trained.save(tmp_path / "m.forel")
    loaded = forel.load(tmp_path / "m.forel")
    expected = forel.predict(trained, ROWS)
    assert (forel.predict(tmp_path / "m.forel", ROWS) == expected).all()
    assert "rows" in repr(loaded)
    assert "<table>" in loaded._repr_html_()
    assert loaded.evaluate(ROWS).report.loss == trained.evaluate(ROWS).report.loss
    if kind == "by key":
        with pytest.raises(ValueError, match="models by key"):
            loaded.inspect()
        loaded, expected = loaded.of_key("a"), forel.predict(trained.of_key("a"), ROWS)
    one = loaded.predict_one(ROWS[5])
    assert one == expected[5] if isinstance(one, str) else one == pytest.approx(float(expected[5]), rel=1e-5)
    assert loaded.inspect().weights
    assert len(list(loaded.explain(ROWS[:2]))) == 2
    if kind in ("default", "certified", "one setting", "numbers"):
        estimator = estimator_of(loaded)
        assert np.isfinite(estimator.predict(np.ones((2, 64)))).all()


@pytest.mark.parametrize("kind", KINDS)
def test_checkpoints_of_every_kind_are_resumed(kind, tmp_path):
    (tmp_path / "a.csv").write_text(
        ",".join(ROWS[0]) + "\n" + "".join(",".join(map(str, row.values())) + "\n" for row in ROWS)
    )
    options = {"bits": 6, "passes": 2, "block_bytes": 300, **KINDS[kind]}
    whole = forel.train(tmp_path / "a.csv", **options)
    blocks = iter(range(1 if kind == "by key" else 2))

    def stop(_):
        if next(blocks, None) is None:
            raise Stopped

    saving = {"checkpoint": tmp_path / "c", "checkpoint_every": 1}
    with pytest.raises(Stopped):
        forel.train(tmp_path / "a.csv", progress=stop, **saving, **options)
    again = forel.train(tmp_path / "a.csv", resume=True, **saving, **options)
    for name, model in {"whole": whole, "again": again}.items():
        model.save(tmp_path / name)
    assert (tmp_path / "whole").read_bytes() == (tmp_path / "again").read_bytes()
