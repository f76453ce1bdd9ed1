"""The HTTP interface: what is predicted, recorded and learned, and what is refused."""

import asyncio
import json
import os
import signal

import msgspec
import numpy as np
import pytest

import forel
from forel.learner.grid import default_grid
from forel.learner.settings import Settings
from forel.log import replay
from forel.serve import AsyncClient, Limits, ServeOptions
from forel.serve import rows as reading
from forel.serve.rows import RowsOfRequests
from forel.serve.service import Waiting

ROWS = [{"site": "news", "age": 31}, {"site": "shop", "age": 4.5}, {"site": "news", "tags": ["a", "b"]}]


def digest(model, tmp_path):
    path = tmp_path / "digest.forel"
    forel.save(path, model.learner)
    return path.read_bytes()


def test_predictions_are_those_of_the_model_and_outcomes_are_learned_once(tmp_path, serving, interpreted):
    async def main():
        async with serving.running(tmp_path / "a", serving.model()) as (server, client):
            same = serving.model()
            for k, row in enumerate(ROWS):
                status, found = await client.post("/v1/predict", {"row": row, "id": f"r{k}"})
                assert (status, found["recorded"], found["id"]) == (200, True, f"r{k}")
                assert found["prediction"] == same.predict_one(row)
            assert (await client.post("/v1/learn", {"id": "r0", "label": 1})) == (200, {"status": "recorded"})
            await serving.settled(server)
            same.learn([{**ROWS[0], "y": 1}], label="y")
            for row in [*ROWS, *ROWS]:
                status, found = await client.post("/v1/predict", {"row": row})
                assert found["prediction"] == same.predict_one(row)
            # A repeated prediction has the answer of the first.
            assert (await client.post("/v1/predict", {"row": ROWS[0], "id": "r0"}))[1]["prediction"] == 0.5
            status, found = await client.post("/v1/predict", {"row": ROWS[1], "id": "r0"})
            assert status == 409
            assert "another row" in found["error"]
            for body, expected, word in (
                ({"id": "r0", "label": 1}, 200, "duplicate"), ({"id": "r0", "label": 0}, 409, "contradicting"),
                ({"id": "none", "label": 0}, 404, "unknown"), ({"id": "r1", "label": -1}, 200, "recorded"),
            ):  # fmt: skip
                status, found = await client.post("/v1/learn", body)
                assert (status, found["status"]) == (expected, word)
            status, event = await client.get("/v1/events/r0")
            assert (event["status"], event["label"], event["prediction"]) == ("recorded", 1.0, 0.5)
            assert (await client.get("/v1/events/r2"))[1]["status"] == "waiting"
            assert (await client.get("/v1/events/zzz"))[0] == 404
            await serving.settled(server)
            same.learn([{**ROWS[1], "y": 0}], label="y")
            status, many = await client.post("/v1/predict", {"rows": ROWS})
            assert many["predictions"] == [same.predict_one(row) for row in ROWS]
            status, found = await client.get("/v1/model")
            assert (found["rows"], found["waiting"]) == (2, 1)
            counts = found["counts"]
            assert [counts[f"outcomes {word}"] for word in ("recorded", "duplicate", "contradicting", "unknown")] == [
                2, 1, 1, 1,
            ]  # fmt: skip
            numbers = (await client.get("/metrics"))[1].decode()
            assert "forel_remembered 2.0" in numbers
            assert "of the last 1,000,000, with about 220 bytes of memory each" in numbers
            assert digest(server.service.model, tmp_path) == digest(same, tmp_path)
        assert digest(replay(tmp_path / "a").model, tmp_path) == digest(same, tmp_path)

    asyncio.run(main())


def test_lines_dicts_and_msgpack_say_the_same(tmp_path, serving, interpreted):
    async def main():
        async with serving.running(tmp_path / "a", serving.model()) as (server, client):
            lines = ["|a x y:2", "|b z", "|a x x"]
            rows = {"rows": lines, "labels": [1, 0, 1], "importances": [1, 2, 0.5]}
            assert (await client.post("/v1/learn", rows))[1] == {"statuses": ["recorded"] * 3}
            await serving.settled(server)
            same = serving.model()
            (tmp_path / "rows.vw").write_text("1 |a x y:2\n-1 2 |b z\n1 0.5 |a x x\n")
            same.learn(str(tmp_path / "rows.vw"))
            assert digest(server.service.model, tmp_path) == digest(same, tmp_path)
            _, many = await client.post("/v1/predict", {"rows": lines})
            one = [(await client.post("/v1/predict", {"row": line}))[1]["prediction"] for line in lines]
            assert many["predictions"] == one == same.predict_many(str(tmp_path / "rows.vw")).tolist()
            packed = msgspec.msgpack.encode({"rows": lines})
            status, body = await client.post("/v1/predict", packed, kind="application/msgpack")
            assert (status, msgspec.msgpack.decode(body)["predictions"]) == (200, one)
            status, found = await client.post("/v1/predict", {"row": lines[0], "explain": True})
            total = sum(part["contribution"] for part in found["explanation"])
            assert 1 / (1 + np.exp(-total)) == pytest.approx(found["prediction"], abs=1e-6)

    asyncio.run(main())


@pytest.mark.parametrize("kind", ["classes", "squared", "words", "default"])
def test_every_kind_of_label_is_coded_as_in_training(kind, tmp_path, serving, interpreted):
    settings, reading, options, labels, wrong = {
        "classes": (Settings("softmax", alpha=0.5), {"classes": ("red", "blue")}, {"classes": 2}, ["red", "blue"], "x"),
        "squared": (Settings("squared", alpha=0.5), {}, {}, [2.5, -7], 1e99),
        "words": (None, {"label": "y", "kinds": {"y": 'labels ["no", "yes"]'}}, {}, ["yes", "no"], "perhaps"),
        "default": (default_grid(full_filters=()), {}, {}, [1, 0], 7.5),
    }[kind]

    async def main():
        async with serving.running(tmp_path / "a", serving.model(settings, reading, **options)) as (server, client):
            _, found = await client.post("/v1/predict", {"rows": ROWS[:2], "ids": ["a", "b"]})
            assert len(found["predictions"]) == 2
            assert ("probabilities" in found) == (kind == "classes")
            outcomes = [{"id": name, "label": label} for name, label in zip("ab", labels, strict=True)]
            assert (await client.post("/v1/learn", {"outcomes": outcomes}))[1] == {"statuses": ["recorded"] * 2}
            status, found = await client.post("/v1/learn", {"row": ROWS[0], "label": wrong})
            assert status == 400
            assert found["error"].startswith(f"label: got {wrong!r}, expected ")
            await serving.settled(server)
            _, event = await client.get("/v1/events/a")
            assert event["label"] == labels[0]
            _, status = await client.get("/v1/model")
            assert status["rows"] == 2
            assert (await client.send("GET", "/metrics"))[0] == 200
            same = serving.model(settings, reading, **options)
            for row, label in zip(ROWS, labels, strict=False):
                same.learn([{**row, "y": label}], label="y")
            assert digest(server.service.model, tmp_path) == digest(same, tmp_path)

    asyncio.run(main())


BAD = [
    (b"{", 400, "Input data was truncated"), ({"row": ROWS[0], "lable": 1}, 400, "lable"), ({}, 400, "row, rows: got"),
    ({"rows": [{"a": {}}, "|a"]}, 400, "all dicts or one line each"),
    ({"row": "|a x:nan"}, 400, "row: got 'nan', expected a number"),
    ({"row": "|a x:1e30"}, 400, "±1e+15, so that"),
    ({"row": {"a": 1e300}}, 400, "a"), ({"rows": [{}] * 11}, 400, "at most 10"),
    ({"row": "|a " + " ".join(map(str, range(30)))}, 400, "at most 20"), ({"row": {}, "id": ""}, 400, "length >= 1"),
    ({"row": "|a\n|b"}, 400, "several lines"), ({"rows": [{}], "ids": ["a", "b"]}, 400, "one for each"),
    ({"row": "1 2 3 4"}, 400, "'|'"), ({"row": [1]}, 400, "row"), ([1], 400, "object"),
]  # fmt: skip


def test_bad_input_is_refused_with_a_sentence_and_changes_nothing(tmp_path, serving, interpreted):
    async def main():
        limits = Limits(body=10_000, rows=10, features=20)
        async with serving.running(tmp_path / "a", serving.model(), limits=limits) as (server, client):
            end = server.service.log.end
            for body, expected, message in BAD:
                status, found = await client.post("/v1/predict", body)
                assert (status, message in found["error"]) == (expected, True), (body, found)
            for body in (
                {"id": "a"}, {"id": "a", "label": "x"}, {"row": {}, "label": 1, "labels": [1]}, {"row": {}},
                {"rows": [{}], "labels": [1, 2]}, {"row": {}, "label": 1, "importance": -1},
                {"outcomes": [{"id": "a"}]},
            ):  # fmt: skip
                status, found = await client.post("/v1/learn", body)
                assert status == 400, (body, found)
            assert (await client.post("/v1/learn", {"id": "a", "label": 1}, kind="text/plain"))[0] == 415
            assert (await client.get("/v1/learn"))[0] == 405
            assert (await client.get("/v2"))[0] == 404
            assert (await client.post("/v1/models", {"promote": "x"}))[0] == 400
            assert server.service.log.end == end
            assert server.service.model.learner.rounds == 0
            other = await serving.connection(server.port).open()
            assert (await other.post("/v1/predict", b"x" * 10_001))[0] == 413
            other = await serving.connection(server.port).open()
            other.writer.write(b"GET / HTTP/1.1\r\nhost: evil.example\r\n\r\n")
            assert (await other.answer())[0] == 403
            other.writer.write(b"nonsense\r\n\r\n")
            assert (await other.answer())[0] == 400
            other = await serving.connection(server.port).open()
            other.writer.write(b"GET / HTTP/1.1\r\nx: " + b"y" * 20_000 + b"\r\n\r\n")
            assert (await other.answer())[0] == 431

    asyncio.run(main())


def test_requests_of_one_read_are_answered_in_order(tmp_path, serving, interpreted):
    async def main():
        async with serving.running(tmp_path / "a", serving.model()) as (_, client):
            parts = []
            for k in range(50):
                body = json.dumps({"row": f"|a x{k}", **({"id": f"r{k}"} if k % 3 == 0 else {})}).encode()
                asked = [(b"/v1/predict", body)]
                if k % 3 == 0:
                    asked.append((b"/v1/learn", json.dumps({"id": f"r{k}", "label": 1}).encode()))
                for path, data in asked:
                    head = b"POST %b HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
                    parts.append(head % path + b"content-length: %d\r\n\r\n%b" % (len(data), data))
            text = b"".join(parts)
            for start in range(0, len(text), 97):  # also within a target
                client.writer.write(text[start : start + 97])
                await asyncio.sleep(0)
            for k in range(50):
                status, found = await client.answer()
                assert (status, found.get("id")) == (200, f"r{k}" if k % 3 == 0 else None)
                if k % 3 == 0:
                    assert await client.answer() == (200, {"status": "recorded"})

    asyncio.run(main())


def test_a_head_that_was_parsed_before_is_known_and_no_other(tmp_path, serving, interpreted):
    def post(path, body, *more, host="localhost"):
        lines = [f"POST {path} HTTP/1.1", f"host: {host}", "content-type: application/json", *more]
        return "\r\n".join([*lines, f"content-length: {len(body)}", "", body]).encode()

    async def main():
        async with serving.running(tmp_path / "a", serving.model()) as (server, client):
            heads, good = server.site.heads, post("/v1/predict", '{"row": "|a"}')
            # One request that is refused and one that is not arrive together: neither head may stand for the other.
            evil = post("/v1/predict", '{"row": "|a"}', host="evil.example")
            for parts in ([evil, good], [good, evil], [evil], [good]):
                client.writer.write(b"".join(parts))
                for part in parts:
                    assert (await client.answer())[0] == (200 if part is good else 403)
            assert list(heads) == [good[: good.index(b"\r\n\r\n") + 4]]
            # The body of a known head may arrive in pieces, or together with the next request.
            for pieces in ([good[:-5], good[-5:]], [good + good[:9], good[9:]], [good[:7], good[7:]]):
                for piece in pieces:
                    client.writer.write(piece)
                    await asyncio.sleep(0.01)
            for _ in range(4):
                assert (await client.answer())[0] == 200
            for strange in (
                post("/v1/predict", '{"row": "|a"}', "connection: close"),
                b"POST /v1/model HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
                b"transfer-encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
                b"POST /v1/model HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\r\n",
            ):
                other = await serving.connection(server.port).open()
                other.writer.write(strange)
                await other.answer()
            assert len(heads) == 1

    asyncio.run(main())


def test_intervals_follow_the_errors_that_were_served(tmp_path, serving, interpreted):
    rng = np.random.default_rng(3)

    async def main():
        async with serving.running(tmp_path / "a", serving.model(Settings("squared", alpha=0.1))) as (server, client):
            assert (await client.post("/v1/predict", {"row": {}, "interval": True}))[1]["interval"] == [0.0, 0.0]
            for k in range(40):
                rows, labels = [{"a": j % 3} for j in range(50)], rng.normal(4, size=50)
                ids = [f"{k}-{j}" for j in range(50)]
                status, found = await client.post("/v1/predict", {"rows": rows, "ids": ids, "interval": True})
                assert status == 200
                outcomes = [{"id": name, "label": label} for name, label in zip(ids, labels.tolist(), strict=True)]
                await client.post("/v1/learn", {"outcomes": outcomes})
                await serving.settled(server)
            ends = np.array(found["intervals"])
            assert ends.shape == (50, 2)
            assert np.abs(ends.mean(1) - found["predictions"]).max() < 1e-9
            assert np.allclose((ends[:, 1] - ends[:, 0]) / 2, 1.645, atol=0.5)
            _, line = await client.post("/v1/predict", {"row": "|a x", "interval": True})
            low, high = line["interval"]
            assert low < line["prediction"] < high
            before = (await client.get("/v1/model"))[1]["interval"]
            assert (before["level"], before["rows"]) == (0.9, 2000)
            assert abs(before["covered"] - 1800) <= before["deviation_bound"]
        async with serving.running(tmp_path / "a") as (_, client):
            assert (await client.get("/v1/model"))[1]["interval"] == before
            assert (await client.post("/v1/predict", {"row": "|a x", "interval": True}))[1] == line
        async with serving.running(tmp_path / "b", serving.model()) as (_, client):
            status, found = await client.post("/v1/predict", {"row": {}, "interval": True})
            assert (status, "intervals are for predicted numbers" in found["error"]) == (400, True)

    asyncio.run(main())


def test_what_waits_too_long_leaves_or_is_a_negative(tmp_path, serving, interpreted, monkeypatch):
    async def main(negative):
        waiting, folder = Waiting(0.0, most=3, negative=negative), tmp_path / str(negative)
        async with serving.running(folder, serving.model(), waiting=waiting) as (server, client):
            await client.post("/v1/predict", {"rows": [{"a": k} for k in range(5)], "ids": list("abcde")})
            await client.post("/v1/predict", {"row": {"a": 9}, "id": "f"})
            assert len(server.service.index.waiting) <= 5
            server.service.expire()
            await serving.settled(server)
            counts = server.service.counts
            status, found = await client.post("/v1/learn", {"id": "f", "label": 0})
            assert (found["status"], status) == (("duplicate", 200) if negative else ("late", 409))
            assert not server.service.index.waiting
            assert counts["outcomes assumed"] + counts["predictions dropped"] == 6
            assert server.service.model.learner.rounds == counts["outcomes assumed"]
        assert digest(replay(folder).model, tmp_path) == digest(server.service.model, tmp_path)

    for negative in (False, True):
        asyncio.run(main(negative))


def test_a_failing_disk_stops_outcomes_and_not_predictions(tmp_path, serving, interpreted, monkeypatch):
    async def main():
        async with serving.running(tmp_path / "a", serving.model()) as (server, client):
            await client.post("/v1/predict", {"rows": ROWS, "ids": list("abc")})
            write = os.write
            monkeypatch.setattr(os, "write", lambda file, data: write(file, data[:7]))
            status, found = await client.post("/v1/learn", {"id": "a", "label": 1})
            assert status == 503
            assert "free some space" in found["error"]
            status, found = await client.post("/v1/predict", {"row": ROWS[0], "id": "new"})
            assert (status, found["recorded"], found["prediction"]) == (200, False, 0.5)
            assert (await client.get("/readyz"))[0] == 503
            assert (await client.get("/healthz"))[1]["status"] == "predictions only"
            monkeypatch.undo()
            assert (await client.post("/v1/learn", {"id": "a", "label": 1}))[0] == 200  # the disk has space again
            assert (await client.get("/readyz"))[0] == 200

            def failing(file):
                raise OSError(5, "Input/output error")

            monkeypatch.setattr(os, "fdatasync", failing)
            for _ in range(2):
                status, found = await client.post("/v1/learn", {"id": "b", "label": 1})
                assert status == 503
                assert "start again" in found["error"]
            assert (await client.post("/v1/predict", {"row": ROWS[0]}))[0] == 200
            assert (await client.get("/metrics"))[0] == 200
            await asyncio.sleep(0.01)
            assert server.service.model.learner.rounds == 1
            monkeypatch.undo()

    asyncio.run(main())


def test_features_of_any_number_of_names_do_not_fill_memory(interpreted, serving, monkeypatch):
    monkeypatch.setattr(reading, "KEPT", 64 * 1000)
    rows = RowsOfRequests(serving.model(), 10)
    for k in range(3000):
        rows.of_dicts([{"a": k, "b": f"v{k}", "c": "x"}])
        assert len(rows._reader.slots) < 500
    rows = RowsOfRequests(serving.model(), 10)
    last = rows.of_dicts([{"a": 1, "b": "v2999"}])
    assert set(rows.names(last.indices).values()) == {"a", "b^v2999"}
    rows.of_dicts([{"b": f"v{k}"} for k in range(3000)])
    assert all(name.endswith(" or another") for name in rows.names(last.indices).values()), "slots are shared"
    for k in range(300):
        rows.of_dicts([{"b": f"{k}" + "x" * 1000}], 1000)
        assert len(rows._reader.slots) < 500


@pytest.mark.slow
def test_a_process_whose_disk_is_full_predicts_and_learns_again_when_it_is_not(tmp_path, serving):
    resource = pytest.importorskip("resource")
    if not hasattr(resource, "prlimit"):
        pytest.skip("needs limits of another process, as Linux has them")
    folder = tmp_path / "a"
    server = serving.process(folder, "--alpha", "0.1", "--bits", "10")

    def room(size):
        resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))

    async def main():
        client = await serving.connection(server.port).open()
        await client.post("/v1/predict", {"rows": ROWS, "ids": list("abc")})
        assert (await client.post("/v1/learn", {"id": "a", "label": 1}))[0] == 200
        room(next((folder / "log").glob("*.log")).stat().st_size + 20)  # a part of a record
        status, found = await client.post("/v1/learn", {"id": "b", "label": 1})
        assert (status, "free some space" in found["error"]) == (503, True)
        status, found = await client.post("/v1/predict", {"row": ROWS[0], "id": "new"})
        assert (status, found["recorded"]) == (200, False)
        assert (await client.get("/readyz"))[0] == 503
        assert b"forel_learning 0.0" in (await client.get("/metrics"))[1]
        room(resource.RLIM_INFINITY)
        assert (await client.post("/v1/learn", {"id": "b", "label": 1}))[0] == 200
        assert b"forel_learning 1.0" in (await client.get("/metrics"))[1]
        await serving.close()

    asyncio.run(main())
    server.stop(signal.SIGKILL)
    assert "2 rows learned, 2 of them again from the log, 1 predictions wait" in serving.process(folder).lines[0]


def test_slow_and_idle_clients_are_let_go(tmp_path, serving, interpreted):
    async def main():
        limits = Limits(connections=3)
        async with serving.running(tmp_path / "a", serving.model(), limits=limits) as (server, client):
            slow = await serving.connection(server.port).open()
            slow.writer.write(b"POST /v1/learn HTTP/1.1\r\nhost: localhost\r\ncontent-length: 100\r\n\r\nx")
            third = await serving.connection(server.port).open()
            fourth = await serving.connection(server.port).open()
            assert (await fourth.answer())[0] == 503
            for one in server.site.connections:
                one.since -= 61
            server.site.sweep()
            assert (await slow.answer())[0] == 408
            assert await third.reader.read() == b""
            assert await client.reader.read() == b""
            assert not server.site.connections

    asyncio.run(main())


def test_other_machines_need_a_token(tmp_path, serving, interpreted):
    for refused in ({"host": "0.0.0.0"}, {"host": "::", "vw_port": 1, "token": "t"}, {"cert": "a.pem"}):
        with pytest.raises(ValueError, match=r"got .*, expected"):
            ServeOptions(**refused)

    async def main():
        async with serving.running(tmp_path / "a", serving.model(), token="secret") as (server, client):
            assert (await client.get("/v1/model"))[0] == 401
            assert (await client.send("GET", "/v1/model", headers="authorization: Bearer secre\r\n"))[0] == 401
            assert (await client.send("GET", "/v1/model", headers="authorization: Bearer secret\r\n"))[0] == 200
            assert (await client.get("/healthz"))[0] == 200
            async_client = AsyncClient(server.url, token="secret")
            assert await async_client.predict(ROWS[0]) == 0.5
            await async_client.close()

    asyncio.run(main())
