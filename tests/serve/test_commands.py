"""``forel log``, ``forel replay`` and ``forel challengers``, also of a server that is running."""

import asyncio
import json

import pytest
from pyarrow import parquet
from typer.testing import CliRunner

import forel
from forel.cli.app import app
from forel.learner.settings import Settings
from forel.serve import Client


def run(*arguments, code=0):
    found = CliRunner(env={"COLUMNS": "200"}).invoke(app, [*map(str, arguments)])
    assert found.exit_code == code, found.output
    return found.output


@pytest.fixture
def folder(tmp_path, serving, interpreted):
    path = tmp_path / "a"

    async def main():
        async with serving.running(path, serving.model()) as (_, client):
            rows = [{"site": f"s{k}", "age": k} for k in range(6)]
            await client.post("/v1/predict", {"rows": rows, "ids": [f"r{k}" for k in range(6)]})
            outcomes = [{"id": f"r{k}", "label": k % 2} for k in range(4)]
            await client.post("/v1/learn", {"outcomes": outcomes})
            await client.post("/v1/learn", {"rows": rows[4:], "labels": [1, 0]})
            # The log of a running server is read up to where it is written.
            assert len(run("log", path).splitlines()) == 12

    asyncio.run(main())
    return path


def test_the_log_is_listed_filtered_and_exported(folder, tmp_path, interpreted):
    lines = run("log", folder, "--id", "r1").splitlines()
    assert [line.split()[2] for line in lines] == ["prediction", "outcome"]
    assert "label=1.0" in lines[1]
    events = [json.loads(line) for line in run("log", folder, "--json", "--rows").splitlines()]
    assert [one["what"] for one in events] == ["prediction"] * 6 + ["outcome"] * 4 + ["example"] * 2
    assert [len(one["slots"]) for one in events if one["what"] == "prediction"] == [2] * 6
    assert events[2]["values"] == [1.0, 2.0]
    assert run("log", folder, "--what", "outcome", "--since", "2000-01-01").count("\n") == 4
    assert run("log", folder, "--until", "2000-01-01T00:00+00:00") == ""
    run("log", folder, "--rows", "--output", tmp_path / "log.parquet")
    assert parquet.read_table(tmp_path / "log.parquet").to_pylist() == events
    assert "--what: got 'x', expected one of" in run("log", folder, "--what", "x", code=2)
    assert "expected one as 2026-11-19T03:00" in run("log", folder, "--since", "yesterday", code=2)
    assert "which forel serve has written" in run("log", tmp_path / "none", code=2)


def test_replays_are_printed_and_written(folder, tmp_path, interpreted):
    found = json.loads(run("replay", folder, "--json", "--model", tmp_path / "m.forel"))
    assert (found["rows"], found["served"]["rows"], found["replayed"]["rows"]) == (6, 6, 6)
    assert forel.load(tmp_path / "m.forel").learner.rounds == 6
    assert json.loads(run("replay", folder, "--json", "--until", "r1"))["rows"] == 2
    (tmp_path / "gone.txt").write_text("r0\nr3\n")
    assert (
        json.loads(run("replay", folder, "--json", "--without", "r1", "--without-file", tmp_path / "gone.txt"))["rows"]
        == 3
    )
    other = json.loads(run("replay", folder, "--json", "--settings", "alpha=0.01"))
    assert "alpha=0.01" in other["settings"]
    assert other["served"] == found["served"]
    assert other["replayed"] != found["replayed"]
    assert "as served" in run("replay", folder)
    assert "expected name=value" in run("replay", folder, "--settings", "alpha", code=2)
    assert "expected name=value of a setting" in run("replay", folder, "--settings", "alfa=1", code=2)
    assert "the id of an event" in run("replay", folder, "--until", "nobody", code=2)


def test_damage_is_named_and_given_up_on_request(folder, interpreted):
    path = next((folder / "log").glob("*.log"))
    data = bytearray(path.read_bytes())
    place = [json.loads(line)["place"] for line in run("log", folder, "--json").splitlines()][3]
    data[place + 30] ^= 4
    path.write_bytes(data)
    message = run("replay", folder, code=2)
    assert f"forel log DIR --give-up-after {place}" in message
    assert "bytes cut off" in run("log", folder, "--give-up-after", place)
    assert run("log", folder).count("\n") == 3
    assert "expected the log that the models learned from" in run("serve", folder, "--port", "0", code=2)


@pytest.mark.parametrize("option", ["--port", "--vw-port"])
@pytest.mark.parametrize("port", [-1, 65536])
def test_ports_are_not_wrapped_around(tmp_path, option, port):
    assert f"got {port}, expected 0 to 65535" in run(
        "serve", tmp_path / "a", option, port, "--model", tmp_path / "none.forel", code=2
    )


def test_challengers_are_added_promoted_rolled_back_and_removed_while_a_server_runs(tmp_path, serving):
    (tmp_path / "token").write_text("secret\n")
    forel.save(tmp_path / "m.forel", serving.model())
    options = ("--model", str(tmp_path / "m.forel"), "--token-file", str(tmp_path / "token"))
    server = serving.process(tmp_path / "a", *options)
    url = f"http://127.0.0.1:{server.port}"
    token = ("--token-file", tmp_path / "token")

    def names(*arguments):
        models = json.loads(run("challengers", url, *arguments, *token, "--json"))
        return [one["name"] + "*" * one["served"] for one in models]

    assert "expected the server's token" in run("challengers", url, code=2)
    assert names() == ["initial*"]
    assert names("add", "fast", "--settings", "alpha=0.5", "--settings", "l1=1") == ["initial*", "fast"]
    (tmp_path / "a" / "incoming").mkdir()
    forel.save(tmp_path / "a" / "incoming" / "old.forel", serving.model(Settings(alpha=0.1)))
    assert names("add", "old", "--model", "old.forel") == ["initial*", "fast", "old"]
    with Client(url, "secret") as client:
        client.learn_rows([{"a": k % 3} for k in range(60)], [int(k % 3 == 0) for k in range(60)])
    assert names("promote", "fast") == ["initial", "fast*", "old"]
    assert f"{url}: name: got 'none', expected one of initial, fast, old" in run(
        "challengers", url, "promote", "none", *token, code=2
    )
    assert "promote another one first" in run("challengers", url, "remove", "fast", *token, code=2)
    assert names("rollback") == ["initial*", "fast", "old"]
    assert names("remove", "old") == ["initial*", "fast"]
    shown = run("challengers", url, *token)
    assert "initial (served)" in shown
    assert "alpha=0.5" in shown
    assert "fast" in shown.splitlines()[-1]
    for wrong, said in {
        ("swap",): "expected one of list, add", ("add",): "expected one with add", ("rollback", "x"): "expected none",
        ("add", "x"): "expected one of them with add", ("add", "x", "--settings", "alfa=1"): "name=value of a setting",
    }.items():  # fmt: skip
        assert said in run("challengers", url, *wrong, *token, code=2)
    assert server.stop() == 0
    assert "refused" in run("challengers", url, *token, code=2)


def test_a_new_model_has_the_settings_that_are_given(tmp_path, serving):
    server = serving.process(tmp_path / "a", "--bits", "8", "--alpha", "0.5", "--settings", "l1=2")
    shown = json.loads(run("challengers", f"http://127.0.0.1:{server.port}", "--json"))
    assert "l1=2" in json.dumps(shown[0]["settings"]).replace('": ', "=").replace('"', "")
    assert server.stop() == 0
    again = ("serve", tmp_path / "a", "--settings", "l1=2", "--port", "0")
    assert "has a model, which continues to learn" in run(*again, code=2)
    assert "name=value of a setting" in run("serve", tmp_path / "b", "--settings", "l=2", "--port", "0", code=2)
