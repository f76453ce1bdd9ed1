"""A server that is killed comes back to the bytes it would have had: every acknowledged outcome is learned once."""

import asyncio
import collections
import os
import random
import signal

import pytest

import forel
from forel.learner.learner import Learner
from forel.log import Outcome, Prediction, replay
from forel.log.files import Log
from forel.training.model import Model

KILLS, USERS, SECONDS = int(os.environ.get("FOREL_KILLS", "5")), 8, 0.6
OPTIONS = ("--alpha", "0.1", "--bits", "10", "--checkpoint", "300", "--vw-port", "0")


def digest(model, tmp_path):
    path = tmp_path / "digest.forel"
    forel.save(path, Model(model.learner))
    return path.read_bytes()


def row(n):
    return {"site": f"s{n % 7}", "age": n % 50, f"only{n}": 1}


async def user(state, serving, rng):
    """Predict, and send outcomes late and out of order; repeat what was not answered, also while the server is down."""
    client, late, task = None, [], None
    while not state["stop"]:
        try:
            if client is None:
                client = await serving.connection(state["port"]).open()
            if task is None:
                learn = late and (len(late) > 10 or rng.random() < 0.4)
                task = ("learn", late.pop(rng.randrange(len(late)))) if learn else ("predict", next(state["numbers"]))
            what, n = task
            if what == "predict":
                status, _ = await client.post("/v1/predict", {"row": row(n), "id": f"event-{n}"})
                assert status == 200
                late.append(n)
            else:
                status, found = await client.post("/v1/learn", {"id": f"event-{n}", "label": n % 2})
                assert (status, found["status"] in ("recorded", "duplicate")) == (200, True)
                state["acknowledged"].append(n)
            task = None
        except (OSError, asyncio.IncompleteReadError):
            client = None
            await asyncio.sleep(0.01)


async def lines(state):
    """Send blocks of labelled lines; a block that was not answered is not sent again."""
    n, reader = 0, None
    while not state["stop"]:
        try:
            if reader is None:
                reader, writer = await asyncio.open_connection("127.0.0.1", state["vw_port"])
                state["writers"].append(writer)
            block, n = range(n, n + 20), n + 20
            writer.write("".join(f"{(-1) ** k} |line n{k}\n" for k in block).encode())
            for _ in block:
                await reader.readuntil(b"\n")
            state["lines"] += 20
        except (OSError, asyncio.IncompleteReadError):
            reader = None
            state["lost"] += 1
            await asyncio.sleep(0.01)


@pytest.mark.slow
def test_killed_again_and_again_it_has_the_bytes_of_its_log(tmp_path, serving):
    folder, rng = tmp_path / "a", random.Random(7)
    state = {"stop": False, "acknowledged": [], "numbers": iter(range(10**9)), "lines": 0, "lost": 0, "writers": []}

    async def main():
        server = await asyncio.to_thread(serving.process, folder, *OPTIONS)
        state.update(port=server.port, vw_port=server.vw_port)
        tasks = [asyncio.create_task(user(state, serving, random.Random(k))) for k in range(USERS)]
        tasks.append(asyncio.create_task(lines(state)))
        for _ in range(KILLS):
            await asyncio.sleep(SECONDS * rng.uniform(0.5, 1.5))
            await asyncio.to_thread(server.stop, signal.SIGKILL)
            server = await asyncio.to_thread(serving.process, folder)
            state.update(port=server.port)
        for _ in range(600):
            await asyncio.sleep(0.1)
            if len(state["acknowledged"]) > 100:
                break
        state["stop"] = True
        _, stuck = await asyncio.wait(tasks, timeout=20)
        assert not stuck
        for task in tasks:
            task.result()
        for writer in state["writers"]:
            writer.close()
        await serving.close()
        return await asyncio.to_thread(server.stop)

    assert asyncio.run(main()) == 0
    log, names, learned, labels = Log(folder / "log", write=False), {}, collections.Counter(), {}
    for stored in log.records():
        if isinstance(stored.record, Prediction):
            names[stored.place] = stored.record.name
        elif isinstance(stored.record, Outcome):
            name = names[stored.record.place].decode()
            learned[name] += 1
            labels[name] = stored.record.label
    acknowledged = [f"event-{n}" for n in state["acknowledged"]]
    assert len(acknowledged) > 50
    assert set(learned.values()) == {1}
    assert set(acknowledged) <= set(learned)
    assert all(label == int(name.split("-")[1]) % 2 for name, label in labels.items())
    latest = sorted((folder / "checkpoints").glob("*"))[-1]
    model = forel.load(latest / "initial.forel")
    assert model.learner.rounds == replay(folder).rows >= len(learned) + state["lines"]
    assert digest(replay(folder).model, tmp_path) == digest(model, tmp_path)
    log.close()


@pytest.mark.slow
def test_a_process_that_is_asked_to_stop_answers_learns_and_saves(tmp_path, serving):
    folder = tmp_path / "a"
    server = serving.process(folder, *OPTIONS)

    async def main():
        client = await serving.connection(server.port).open()
        await client.post("/v1/predict", {"rows": [row(n) for n in range(50)], "ids": [str(n) for n in range(50)]})
        outcomes = [{"id": str(n), "label": n % 2} for n in range(50)]
        assert (await client.post("/v1/learn", {"outcomes": outcomes}))[0] == 200
        await serving.close()

    asyncio.run(main())
    assert server.stop(signal.SIGINT) == 0
    model = forel.load(sorted((folder / "checkpoints").glob("*"))[-1] / "initial.forel")
    assert model.learner.rounds == 50
    again = serving.process(folder)
    assert "50 rows learned, 0 of them again" in again.lines[0]
    assert again.stop() == 0
    same = Model(Learner(1 << 10, model.settings), {"reading": model.extra["reading"]})
    same.learn([{**row(n), "y": n % 2} for n in range(50)], label="y")
    assert digest(same, tmp_path) == digest(model, tmp_path)
