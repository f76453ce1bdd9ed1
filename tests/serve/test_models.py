"""Models that learn in the shadow of the one that is served: added, compared, promoted, rolled back, removed."""

import asyncio

import numpy as np
import pytest

import forel
from forel.learner.settings import Settings
from forel.log import replay
from forel.serve import AsyncClient, Client, ServerError

RNG = np.random.default_rng(2)


@pytest.fixture(autouse=True)
def _same_rows():
    global RNG
    RNG = np.random.default_rng(2)


def some_rows(count, flip=False):
    """Rows whose label is that of their first feature nine times out of ten."""
    first = RNG.integers(0, 2, count)
    labels = np.where(RNG.uniform(size=count) < 0.9, first, 1 - first)
    rows = [{"first": f"v{value}", "other": f"w{RNG.integers(0, 5)}"} for value in first]
    return rows, ((1 - labels) if flip else labels).tolist()


async def learn(client, server, serving, count, flip=False):
    rows, labels = some_rows(count, flip)
    assert (await client.post("/v1/learn", {"rows": rows, "labels": labels}))[0] == 200
    await serving.settled(server)


def test_a_better_challenger_is_found_by_the_test_and_promoted(tmp_path, serving, interpreted):
    async def main():
        slow = serving.model(Settings(alpha=1e-4))
        async with serving.running(tmp_path / "a", slow, promote=True, level=0.01) as (server, client):
            await learn(client, server, serving, 50)
            change = {"add": "fast", "settings": {"alpha": 0.5}}
            assert (await client.post("/v1/models", change))[0] == 200
            assert (await client.post("/v1/models", change))[0] == 400
            for _ in range(60):
                await learn(client, server, serving, 100)
                _, found = await client.get("/v1/model")
                if found["served"] == "fast":
                    break
                against = found["models"][1]["against_served"]
                assert against["better"] is None
                assert against["interval"][0] < against["interval"][1]
            assert found["served"] == "fast"
            assert (await client.post("/v1/models", {"rollback": True}))[0] == 200
            assert (await client.get("/v1/model"))[1]["served"] == "initial"
            assert (await client.post("/v1/models", {"rollback": True}))[0] == 400
            assert (await client.post("/v1/models", {"remove": "initial"}))[0] == 400
            assert (await client.post("/v1/models", {"remove": "fast"}))[0] == 200
            assert [one["name"] for one in (await client.get("/v1/model"))[1]["models"]] == ["initial"]
            expected = server.service.model.learner.weights
        assert (replay(tmp_path / "a").model.learner.weights == expected).all()

    asyncio.run(main())


def test_challengers_come_from_files_of_one_folder_only(tmp_path, serving, interpreted):
    async def main():
        async with serving.running(tmp_path / "a", serving.model()) as (server, client):
            (tmp_path / "a" / "incoming").mkdir()
            forel.save(tmp_path / "outside.forel", serving.model())
            for name in ("../outside.forel", str(tmp_path / "outside.forel"), "none.forel"):
                status, found = await client.post("/v1/models", {"add": "x", "model": name})
                assert status == 400
                assert "the name of a model file in" in found["error"]
            (tmp_path / "a" / "incoming" / "bad.forel").write_bytes(b"no model")
            assert (await client.post("/v1/models", {"add": "x", "model": "bad.forel"}))[0] == 400
            forel.save(tmp_path / "a" / "incoming" / "good.forel", serving.model(Settings(alpha=0.3)))
            assert (await client.post("/v1/models", {"add": "x", "model": "good.forel"}))[0] == 200
            await learn(client, server, serving, 30)
            assert (await client.post("/v1/models", {"promote": "x"}))[0] == 200
            _, found = await client.get("/v1/model")
            assert (found["served"], found["rows"]) == ("x", 30)

    asyncio.run(main())


def test_drift_raises_an_alarm_that_says_where(tmp_path, serving, interpreted):
    async def main():
        async with serving.running(tmp_path / "a", serving.model()) as (server, client):
            for k in range(12):
                await learn(client, server, serving, 500, flip=k >= 8)
            _, found = await client.get("/v1/model")
            assert found["alarms"]["sentence"].endswith("at most 1 false alarm in 1,000,000 rows is expected")
            alarm = server.service.contest.alarms.found[0]
            assert 3900 < alarm.since < 4200
            assert alarm.row < 4600
            text = (await client.get("/metrics"))[1].decode()
            assert "forel_rows_learned 6000.0" in text

    asyncio.run(main())


def test_clients_batch_and_repeat_what_is_safe(tmp_path, serving, interpreted):
    async def main():
        async with serving.running(tmp_path / "a", serving.model()) as (server, _):
            rows, labels = some_rows(1500)
            ids = [f"r/{k}" for k in range(1500)]

            def waiting():
                with Client(server.url) as client:
                    assert client.predict_many(rows, ids) == [0.5] * 1500
                    assert client.learn("r/0", labels[0]) == "recorded"
                    assert client.learn("r/0", labels[0]) == "duplicate"
                    assert client.learn("zzz", 1) == "unknown"
                    statuses = client.learn_many(zip(ids[:1200], labels, strict=False))
                    assert statuses == ["duplicate", *["recorded"] * 1199]
                    client.learn_rows(rows[1200:], labels[1200:])
                    assert client.event("r/0")["status"] == "recorded"
                    assert client.event("r/1400")["status"] == "waiting"
                    client.change(add="other", settings={"alpha": 0.1})
                    with pytest.raises(ServerError, match="row: got 'nan'"):
                        client.predict("|a x:nan")
                    return client.model(), client.predict(rows[0])

            found, prediction = await asyncio.to_thread(waiting)
            assert found["waiting"] == 300
            await serving.settled(server)
            client = AsyncClient(server.url)
            assert (
                await asyncio.gather(*(client.predict(rows[0]) for _ in range(3)))
                == [await client.predict(rows[0])] * 3
            )
            assert await client.learn_many([("r/1400", 1), ("r/1401", 0)]) == ["recorded"] * 2
            assert (await client.model())["waiting"] == 298
            assert 0 < prediction < 1
            await client.close()

    asyncio.run(main())


def test_a_challenger_with_a_few_huge_losses_is_not_promoted(tmp_path, serving, interpreted):
    async def main():
        async with serving.running(tmp_path / "a", serving.model(), promote=True, level=0.05) as (server, client):
            assert (await client.post("/v1/models", {"add": "other", "settings": {"alpha": 0.5}}))[0] == 200
            compared = server.service.contest.comparisons["other"]
            compared.add([0.7] * 999 + [0.1], [0.3] * 999 + [1e6])
            assert (compared.better, compared.smaller_loss) == ("B", "A")
            await learn(client, server, serving, 5)
            assert (await client.get("/v1/model"))[1]["served"] == "initial"
            compared.add([1e6], [0.1])
            assert (compared.better, compared.smaller_loss) == ("B", "B")
            await learn(client, server, serving, 5)
            assert (await client.get("/v1/model"))[1]["served"] == "other"

    asyncio.run(main())
