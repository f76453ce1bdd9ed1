"""The protocol of VW's daemon."""

import asyncio
import socket
from contextlib import suppress

import pytest

from forel.learner.settings import Settings
from forel.log import replay
from forel.serve import Limits
from forel.serve.connection import PIECE, Site
from forel.serve.http import Http
from forel.serve.lines import Lines


async def talk(server, text, pieces=None):
    """Send bytes, in pieces of some size, and return the answer."""
    reader, writer = await asyncio.open_connection("127.0.0.1", server.vw_port)
    for start in range(0, len(text), pieces or len(text)):
        writer.write(text[start : start + (pieces or len(text))])
        await writer.drain()
        await asyncio.sleep(0)
    writer.write_eof()
    found = await asyncio.wait_for(reader.read(), 20)
    writer.close()
    return found


LINES = b"1 'first|a x y:2\n-1 |b z\n|a x\n\n1 3 |a y\n1 2 3 4|a\n|a x:1e40\n7 |a x\nlast|b z\n1 2e6 |a x\n"


@pytest.mark.parametrize("pieces", [None, 1, 7])
def test_each_line_is_answered_by_a_line_with_its_tag(tmp_path, serving, interpreted, pieces):
    async def main():
        async with serving.running(tmp_path / "a", serving.model(), vw_port=0) as (server, _):
            found = await talk(server, LINES, pieces)
            await serving.settled(server)
            return server, found.decode().split("\n")

    server, found = asyncio.run(main())
    assert len(found) == LINES.count(b"\n") + 1
    assert found[0] == "0.500000 first"
    assert found[3] == ""
    assert found[5].startswith("error: got '3', expected '|'")
    assert found[6].startswith("error: got '1e40', expected a number within")
    assert found[7] == "error: label: got 7.0, expected a number from 0 to 1, or -1"
    assert found[8].endswith(" last")
    assert found[9] == "error: got the importance 2e+06, expected at most 1,000,000"
    assert server.service.model.learner.rounds == 3
    same = serving.model()
    (tmp_path / "rows.vw").write_text("1 |a x y:2\n-1 |b z\n1 3 |a y\n")
    same.learn(str(tmp_path / "rows.vw"))
    for model in (server.service.model, replay(tmp_path / "a").model):
        assert (model.learner.weights == same.learner.weights).all()


@pytest.mark.parametrize("kind", [Lines, Http])
def test_connections_take_turns_where_much_arrives(kind):
    """Some event loops read a ready socket many times before they look at others."""

    class Transport:
        reading, closed = True, False

        def set_write_buffer_limits(self, high):
            pass

        def is_closing(self):
            return self.closed

        def pause_reading(self):
            self.reading = False

        def resume_reading(self):
            self.reading = True

    async def main():
        site, transport = Site(lambda request: None, Limits()), Transport()
        connection = kind(None, site) if kind is Lines else kind(site)
        connection.connection_made(transport)
        site.received[:9] = b"POST / HT"
        connection.buffer_updated(9)
        assert transport.reading
        site.received[:] = b"x" * PIECE
        connection.take = lambda data: None
        for state, resumed in (({}, True), ({"waiting": True}, False), ({"unanswered": 1024, "waiting": False}, False)):
            vars(connection).update(state)
            connection.buffer_updated(PIECE)
            assert not transport.reading
            await asyncio.sleep(0)
            assert transport.reading is resumed

    asyncio.run(main())


def test_classes_are_answered_by_their_names(tmp_path, serving, interpreted):
    async def main():
        model = serving.model(Settings("softmax", alpha=0.5), {"classes": ("1", "2")}, classes=2)
        async with serving.running(tmp_path / "a", model, vw_port=0) as (server, _):
            await talk(server, b"2 |a x\n" * 20)
            await serving.settled(server)
            return await talk(server, b"|a x\ntag|a x\n9 |a x\n")

    assert asyncio.run(main()) == b"2\n2 tag\nerror: label: got 9.0, expected one of the classes '1', '2'\n"


def test_a_line_without_end_is_limited_and_clients_may_vanish(tmp_path, serving, interpreted):
    async def main():
        async with serving.running(
            tmp_path / "a", serving.model(), vw_port=0, limits=Limits(body=1 << 17)
        ) as (server, client):  # fmt: skip
            with suppress(ConnectionError):  # if the client was still sending
                found = await talk(server, b"|a " + b"x" * (1 << 18))
                assert found in (b"", b"error: line: got more than 131,072 bytes, expected fewer\n")
            for _ in range(3):
                gone = socket.create_connection(("127.0.0.1", server.vw_port))
                gone.sendall(b"1 |a x\n" * 100)
                gone.close()
            await asyncio.sleep(0.05)
            assert (await client.get("/healthz"))[0] == 200

    asyncio.run(main())
