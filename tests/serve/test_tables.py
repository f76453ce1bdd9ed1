"""Models of tables, as ``forel.train`` makes them by default, are served, too: with curves and pairs of columns."""

import asyncio

import numpy as np
import pytest

import forel
from forel.log import replay


@pytest.mark.slow
def test_a_model_with_curves_is_served_and_learns_as_in_training(tmp_path, serving):
    rng = np.random.default_rng(4)
    x, z = rng.uniform(-1, 1, 400), rng.uniform(-1, 1, 400)
    rows = [{"x": float(a), "z": float(b), "city": "ab"[k % 2]} for k, (a, b) in enumerate(zip(x, z, strict=True))]
    labels = (np.abs(x) > 0.5).astype(int).tolist()
    table = [{**row, "y": label} for row, label in zip(rows, labels, strict=True)]
    forel.train(table[:300], label="y", bits=10).save(tmp_path / "m.forel")
    assert forel.load(tmp_path / "m.forel").learner.mixture.curves is not None

    async def main():
        same = forel.load(tmp_path / "m.forel")
        async with serving.running(tmp_path / "a", forel.load(tmp_path / "m.forel")) as (server, client):
            _, found = await client.post("/v1/predict", {"rows": rows[300:], "ids": [str(k) for k in range(100)]})
            assert found["predictions"] == same.predict_many(rows[300:]).tolist()  # of one row, the last bit may differ
            outcomes = [{"id": str(k), "label": label} for k, label in enumerate(labels[300:])]
            assert (await client.post("/v1/learn", {"outcomes": outcomes}))[0] == 200
            await serving.settled(server)
            same.learn(table[300:])
            _, found = await client.post("/v1/predict", {"row": rows[0], "explain": True})
            assert found["prediction"] == same.predict_one(rows[0])
            assert {part["name"] for part in found["explanation"]} >= {"bias", "x"}
            forel.save(tmp_path / "same.forel", same.learner)
            forel.save(tmp_path / "served.forel", server.service.model.learner)
            assert (tmp_path / "same.forel").read_bytes() == (tmp_path / "served.forel").read_bytes()
        forel.save(tmp_path / "replayed.forel", replay(tmp_path / "a").model.learner)
        assert (tmp_path / "same.forel").read_bytes() == (tmp_path / "replayed.forel").read_bytes()

    asyncio.run(main())
