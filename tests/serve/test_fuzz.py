"""Anything may be sent to a server: no crash, no status 500, and refused input leaves the log and the model alone."""

import asyncio
import json
import os
import random
from collections import Counter

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from forel.learner.settings import Settings
from forel.serve import Limits
from forel.serve.service import Waiting

TIMES = int(os.environ.get("FOREL_FUZZ", "1"))  # 100 for 100,000 requests
TOKENS = [
    b"1",
    b"-1",
    b"|a",
    b"|b x:2",
    b"'tag",
    b" ",
    b"\n",
    b"x",
    b":",
    b"nan",
    b"1e999",
    b"\xff",
    b"\x00",
    b"|",
    b"3",
]
values = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
names = st.sampled_from(["a", "b", "c", "", "<b>", "\U0001f600", "x" * 300])
fields = {
    "row": values | st.sampled_from(["|a x", {"a": 1}, {"a": "x"}]), "rows": st.lists(values, max_size=3), "id": names,
    "ids": st.lists(names, max_size=3), "label": values | st.sampled_from([0, 1]), "importance": values,
    "labels": st.lists(values, max_size=3), "model": names,
    "outcomes": st.lists(st.fixed_dictionaries({"id": names, "label": values}), max_size=3),
    "explain": st.booleans(), "interval": st.booleans(), "add": names, "settings": values,
    "promote": names, "rollback": st.booleans(), "remove": names,
}  # fmt: skip
bodies = st.fixed_dictionaries({}, optional=fields) | values
paths = st.sampled_from(["/v1/predict", "/v1/learn", "/v1/models", "/v1/events/a", "/v1/model", "/metrics", "/x", "/"])


def test_any_request_gets_an_answer_and_refused_ones_change_nothing(tmp_path, serving, interpreted):
    statuses = Counter()
    loop = asyncio.new_event_loop()
    opened = loop.run_until_complete

    async def exchange(server, method, path, body, kind):
        client = await serving.connection(server.port).open()
        service = server.service
        before = service.log.end, service.model.learner.rounds
        status, found = await asyncio.wait_for(client.send(method, path, body, kind=kind), 20)
        client.writer.close()
        await serving.settled(server)
        statuses[status] += 1
        assert status in (200, 400, 401, 403, 404, 405, 409, 413, 415), (path, body, found)
        if status != 200:
            assert found["error"]
            assert "zip()" not in found["error"]
            assert "unpack" not in found["error"]
            assert (service.log.end, service.model.learner.rounds) == before, (path, body, found)

    running = serving.running(tmp_path / "a", serving.model(), limits=Limits(rows=5, features=8, body=5000))
    server, _ = opened(running.__aenter__())

    @settings(max_examples=300 * TIMES, suppress_health_check=list(HealthCheck))
    @given(st.sampled_from(["POST", "POST", "POST", "GET", "PUT"]), paths, bodies,
           st.sampled_from(["application/json"] * 4 + ["application/msgpack", "text/plain"]))  # fmt: skip
    def fuzz(method, path, body, kind):
        opened(exchange(server, method, path, json.dumps(body).encode(), kind))

    @settings(max_examples=100 * TIMES, suppress_health_check=list(HealthCheck))
    @given(paths, st.binary(max_size=60), st.sampled_from(["application/json", "application/msgpack"]))
    def fuzz_bytes(path, body, kind):
        opened(exchange(server, "POST", path, body, kind))

    fuzz()
    fuzz_bytes()
    opened(running.__aexit__(None, None, None))
    loop.close()
    assert statuses[200] > 10
    assert statuses[400] > 50


def test_any_bytes_on_both_ports_leave_the_server_well(tmp_path, serving, interpreted):
    rng = random.Random(3)

    def noise(request):
        if rng.random() < 0.3:
            return rng.randbytes(rng.randrange(200))
        text = bytearray(request)
        for _ in range(rng.randrange(6)):
            text[rng.randrange(len(text))] = rng.randrange(256)
        return bytes(text[: rng.randrange(len(text)) or None])

    async def main():
        async with serving.running(tmp_path / "a", serving.model(), vw_port=0) as (server, _):
            good = b"POST /v1/predict HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
            good += b'content-length: 13\r\n\r\n{"row": "|a"}'
            for k in range(400 * TIMES):
                port = server.port if k % 2 else server.vw_port
                lines = b"".join(rng.choice(TOKENS) for _ in range(30))
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.write(noise(good) if k % 2 else lines)
                writer.write_eof()
                found = await asyncio.wait_for(reader.read(), 20)
                if k % 2 == 0:
                    complete = lines if lines.endswith(b"\n") else lines + b"\n"
                    assert found.count(b"\n") == complete.count(b"\n"), (lines, found)
                assert b" 500 " not in found[:20]
                writer.close()
            await serving.settled(server)
            client = await serving.connection(server.port).open()  # one without requests is closed after a minute
            assert (await client.get("/healthz"))[1]["status"] == "ok"
            assert server.service.broken is None
            assert (await client.get("/v1/model"))[0] == 200
            assert not server.service.unacknowledged

    asyncio.run(main())


@pytest.mark.slow
def test_what_is_answered_adds_up_to_what_was_sent(tmp_path, serving, interpreted):
    """Late, duplicate, unknown, contradicting and malformed outcomes of many clients, with little room to wait."""
    sent, got = Counter(), Counter()

    async def user(server, number, rng):
        client, known = await serving.connection(server.port).open(), {}
        for k in range(120):
            name = f"{number}-{k}"
            status, found = await client.post("/v1/predict", {"row": {"a": k % 9, "b": number}, "id": name})
            assert (status, found["recorded"]) == (200, True)
            sent["predictions"] += 1
            known[name] = k % 2
            some = rng.choice(list(known))
            what = rng.choice(["right", "right", "right", "wrong", "unknown", "malformed"])
            body = {"id": some if what != "unknown" else f"x{k}", "label": known[some]}
            if what == "wrong":
                body["label"] = 1 - known[some]
            if what == "malformed":
                body["label"] = "perhaps"
            status, found = await client.post("/v1/learn", body)
            sent["outcomes"] += 1
            got[found.get("status", status)] += 1

    async def main():
        waiting = Waiting(3600.0, most=200)
        async with serving.running(tmp_path / "a", serving.model(Settings(alpha=0.1)), waiting=waiting) as (server, _):
            await asyncio.gather(*(user(server, k, random.Random(k)) for k in range(8)))
            await serving.settled(server)
            counts, index = server.service.counts, server.service.index
            assert counts["predictions"] == sent["predictions"] == 960
            words = ("recorded", "duplicate", "contradicting", "late", "unknown")
            assert {word: counts[f"outcomes {word}"] for word in words} == {word: got[word] for word in words}
            assert all(got[word] > 10 for word in words)
            assert sum(got.values()) == sent["outcomes"] == 960
            assert got[400] == counts["requests refused"]
            assert len(index.waiting) + counts["predictions dropped"] + got["recorded"] == 960
            assert len(index.waiting) <= 200
            assert server.service.model.learner.rounds == got["recorded"]

    asyncio.run(main())


def test_requests_generated_from_the_description_are_answered_as_it_says(tmp_path, serving, interpreted):
    schemathesis = pytest.importorskip("schemathesis", reason="schemathesis is not installed")
    import threading

    started, stop, found = threading.Event(), threading.Event(), []

    async def main():
        async with serving.running(tmp_path / "a", serving.model()) as (server, _):
            found.append(server.url)
            started.set()
            while not stop.is_set():
                await asyncio.sleep(0.01)
            found.append(server.service.broken)

    thread = threading.Thread(target=lambda: asyncio.run(main()))
    thread.start()
    assert started.wait(60)
    try:
        schema = schemathesis.openapi.from_url(f"{found[0]}/openapi.json")
        for operation in (one.ok() for one in schema.get_all_operations()):

            @settings(max_examples=15 * TIMES, suppress_health_check=list(HealthCheck))
            @given(operation.as_strategy())
            def call(case):
                answer = case.call(timeout=20)
                case.validate_response(answer, checks=[schemathesis.checks.not_a_server_error])
                assert str(answer.status_code) in case.operation.definition.raw["responses"]

            call()
    finally:
        stop.set()
        thread.join()
    assert found[1] is None
