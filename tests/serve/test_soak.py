"""A server under load for a minute, or for FOREL_SOAK seconds: all is answered and counted, and memory stays level."""

import asyncio
import json
import os
import pathlib
import random
import time
from collections import Counter

import pytest

import forel
from forel.log import replay
from forel.serve import Client

SECONDS, USERS, WAITING = float(os.environ.get("FOREL_SOAK", "60")), 8, 2000
OPTIONS = ("--bits", "16", "--vw-port", "0", "--most-waiting", str(WAITING), "--wait", "20s", "--checkpoint", "20000")
WORDS = ("recorded", "duplicate", "contradicting", "late", "unknown")
PER_ID, SLACK = 600, 64 << 20  # bytes of memory for an id that is remembered, and for everything else


def resident(process):
    lines = pathlib.Path(f"/proc/{process.pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith("VmRSS"))


async def user(serving, port, number, until, sent, got):
    """Predict rows and lines, and tell right, wrong, repeated, late, unknown and malformed outcomes."""
    rng, client, known = random.Random(number), await serving.connection(port).open(), {}
    k = 0
    while time.monotonic() < until:
        k += 1
        name = f"{number}-{k}"
        row = f"|a x{k % 97} y:{number}" if k % 2 else {"a": k % 97, "b": f"s{number}"}
        status, found = await client.post("/v1/predict", {"row": row, "id": name})
        assert (status, found["recorded"]) == (200, True)
        sent["predictions"] += 1
        known[name] = rng.randrange(2)
        what = rng.choice(["right"] * 5 + ["late", "wrong", "unknown", "malformed", "bad row"])
        some = rng.choice(list(known)) if what == "right" else next(iter(known)) if what == "late" else name
        body = {"id": some if what != "unknown" else f"x{k}", "label": known[some]}
        if what == "wrong":
            await client.post("/v1/learn", body)
            sent["outcomes"], got["recorded"] = sent["outcomes"] + 1, got["recorded"] + 1
            body["label"] = 1 - known[some]
        elif what == "malformed":
            body["label"] = "perhaps"
        elif what == "bad row":
            body = {"row": [1], "label": 1}
        status, found = await client.post("/v1/learn", body)
        assert status in (200, 400, 404, 409)
        sent["outcomes"] += 1
        got[found.get("status", status)] += 1
        if len(known) > WAITING:
            del known[next(iter(known))]


async def lines(port, until, sent):
    """Blocks of lines, a third of them with a label and some malformed."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    while time.monotonic() < until:
        block = [b"1 |a x\n", b"|a y\n", b"tag|a z:2\n", b"-1 |b x\n", b"1 2 3 |a\n", b"1 |a v\n"] * 5
        writer.write(b"".join(block))
        for _ in block:
            await reader.readuntil(b"\n")
        sent["lines"] += len(block)
        await asyncio.sleep(0.01)
    writer.close()


@pytest.mark.slow
def test_a_server_under_load_answers_counts_and_learns_everything(tmp_path, serving):
    server, sent, got = serving.process(tmp_path / "a", *OPTIONS), Counter(), Counter()
    sizes = []

    async def watch(until):
        with Client(f"http://127.0.0.1:{server.port}") as client:
            while time.monotonic() < until:
                await asyncio.sleep(SECONDS / 20)
                known = (await asyncio.to_thread(client.model))["counts"]
                sizes.append((resident(server.process), known["predictions"]))

    async def main():
        until = time.monotonic() + SECONDS
        await asyncio.gather(
            watch(until), lines(server.vw_port, until, sent),
            *(user(serving, server.port, k, until, sent, got) for k in range(USERS)),
        )  # fmt: skip
        await serving.close()

    asyncio.run(main())
    with Client(f"http://127.0.0.1:{server.port}") as client:
        while client.model()["queue"]:
            time.sleep(0.05)
        found = client.model()
    counts, said = found["counts"], {"sent": sent, "got": got, "memory": sizes, "counts": found["counts"]}
    print(json.dumps(said))
    assert counts["predictions"] == sent["predictions"] + sent["lines"] * 5 // 6
    assert counts["lines refused"] == sent["lines"] // 6
    learned = sent["lines"] // 2
    assert {word: counts.get(f"outcomes {word}", 0) - learned * (word == "recorded") for word in WORDS} == {
        word: got[word] for word in WORDS
    }
    assert sum(got.values()) == sent["outcomes"]
    assert got[400] == counts["requests refused"]
    assert all(got[word] for word in (*WORDS[:3], "unknown", 400))
    assert found["waiting"] + counts.get("predictions dropped", 0) + got["recorded"] == sent["predictions"]
    assert found["waiting"] <= WAITING
    assert found["rows"] == got["recorded"] + learned
    first, last = sizes[len(sizes) // 4], sizes[-1]
    assert last[0] - first[0] < SLACK + PER_ID * min(10**6, last[1] - first[1])
    assert server.stop() == 0
    latest, again = sorted((tmp_path / "a" / "checkpoints").glob("*"))[-1], replay(tmp_path / "a")
    assert again.rows == found["rows"]
    assert (forel.load(latest / "initial.forel").learner.weights == again.model.learner.weights).all()
