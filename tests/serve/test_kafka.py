"""Learning from a topic in Kafka: each message once, however often the server is killed."""

import asyncio
import json
import random
import time

import pytest

import forel
from forel.learner.settings import Settings
from forel.log import replay
from forel.log.folder import first_model

Client = pytest.importorskip("forel.serve", reason="the extra serve is not installed").Client
kafka = pytest.importorskip("confluent_kafka", reason="the extra kafka is not installed")


class Broker:
    """librdkafka's cluster in this process, as a producer; topics have four partitions."""

    def __init__(self):
        self._producer = kafka.Producer({"test.mock.num.brokers": 1, "log_level": 0})
        (found,) = self._producer.list_topics(timeout=10).brokers.values()
        self.address = f"{found.host}:{found.port}"

    def send(self, topic, values, partition=0):
        for value in values:
            value = value if isinstance(value, bytes) else json.dumps(value).encode()
            self._producer.produce(topic, value, partition=partition)
        assert self._producer.flush(10) == 0


@pytest.fixture(scope="module")
def broker():
    return Broker()


def examples(count, start=0):
    """Rows and lines with labels."""
    rng = random.Random(start)
    for k in range(start, start + count):
        site, label = f"s{rng.randrange(9)}", rng.randrange(2)
        yield {"row": {"site": site, "k": k % 7}, "label": label} if k % 2 else f"{label} |x site={site}".encode()


async def eventually(true):
    for _ in range(2000):
        if true():
            return
        await asyncio.sleep(0.005)
    raise AssertionError("it did not happen")


def test_messages_are_outcomes_rows_and_lines(tmp_path, broker, serving, interpreted):
    async def main():
        url = f"kafka://{broker.address}/mixed"
        broker.send("mixed", examples(10))
        async with serving.running(tmp_path / "a", serving.model(), stream=url) as (server, client):
            contest, counts = server.service.contest, server.service.counts
            await eventually(lambda: contest.rows == 10)
            for k in range(3):
                await client.post("/v1/predict", {"row": {"a": k}, "id": f"r{k}"})
            outcomes = [{"id": f"r{k}", "label": 1} for k in (0, 1, 0, 9)]
            wrong = [b"", b"{", b"|a", b"1 |a x:nan", {"id": "r2"}, {"id": "r2", "row": {}, "label": 1}, {"rows": []}]
            broker.send("mixed", [*outcomes, *wrong, {"id": "r2", "label": "maybe"}], partition=1)
            await eventually(lambda: counts["messages refused"] == 8)
            await serving.settled(server)
            assert (counts["outcomes recorded"], counts["outcomes duplicate"], counts["outcomes unknown"]) == (12, 1, 1)
            assert contest.rows == 12
            _, found = await client.get("/v1/model")
            assert found["offsets"] == {"mixed/0": 10, "mixed/1": 12}
        # What was refused is not taken again.
        async with serving.running(tmp_path / "a", stream=url) as (server, client):
            broker.send("mixed", examples(2, 10))
            await eventually(lambda: server.service.contest.rows == 14)
            assert server.service.counts["messages refused"] == 0
        assert replay(tmp_path / "a").rows == 14

    asyncio.run(main())


def test_offsets_that_are_gone_and_topics_that_are_not_there_are_named(tmp_path, broker, serving, interpreted):
    async def main():
        with pytest.raises(ValueError, match="expected kafka://BROKER:PORT/TOPIC"):
            async with serving.running(tmp_path / "x", serving.model(), stream="kafka://topic"):
                pass
        broker.send("gone", examples(3))
        async with serving.running(tmp_path / "a", serving.model(), stream=f"kafka://{broker.address}/gone") as one:
            await eventually(lambda: one[0].service.contest.rows == 3)
        other = Broker()  # which has fewer messages than were learned from
        other.send("gone", examples(1))
        async with serving.running(tmp_path / "a", stream=f"kafka://{other.address}/gone") as (server, client):
            await eventually(lambda: server.service.problem)
            status, found = await client.get("/readyz")
            assert (status, "partition 0: " in found["why"]) == (503, True)
            assert (await client.post("/v1/learn", {"row": {"a": 1}, "label": 1}))[0] == 200

    asyncio.run(main())


@pytest.mark.slow
def test_a_server_that_is_killed_goes_on_exactly_once(tmp_path, broker, serving):
    url = f"kafka://{broker.address}/killed"
    forel.save(tmp_path / "m.forel", serving.model(Settings(alpha=0.3)))
    start = ("--model", str(tmp_path / "m.forel"))
    sent, rng = 1, random.Random(5)
    broker.send("killed", examples(1))
    for _ in range(5):
        server = serving.process(tmp_path / "a", "--from", url, "--checkpoint", "500", *start)
        start = ()
        for _ in range(6):
            broker.send("killed", examples(200, sent))
            sent += 200
            time.sleep(rng.random() * 0.05)
        server.process.kill()
        server.process.wait()
        server.process.stderr.close()
    server = serving.process(tmp_path / "a", "--from", url)
    with Client(f"http://127.0.0.1:{server.port}") as client:
        for _ in range(1000):
            if client.model()["rows"] >= sent:
                break
            time.sleep(0.02)
        assert client.model()["offsets"] == {"killed/0": sent}
    assert server.stop() == 0
    found = replay(tmp_path / "a").model.learner
    assert found.rounds == sent == 6001
    # The same as a server that was never killed.
    other = serving.process(tmp_path / "b", "--from", url, "--model", str(tmp_path / "m.forel"))
    with Client(f"http://127.0.0.1:{other.port}") as client:
        for _ in range(1000):
            if client.model()["rows"] >= sent:
                break
            time.sleep(0.02)
    assert other.stop() == 0
    assert (replay(tmp_path / "b").model.learner.weights == found.weights).all()
    assert not (first_model(tmp_path / "b").learner.weights == found.weights).all()
