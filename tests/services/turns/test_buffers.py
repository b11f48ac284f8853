"""How much is received at once."""

from __future__ import annotations

from functools import partial
from select import EPOLLHUP, EPOLLIN

from disque_tx.services.turns.pump import Session
from tests.services.nodebench import NodeCase


class BufferTests(NodeCase):
    """One client on an ordinary transport, whose socket a test plays."""

    def setUp(self) -> None:
        super().setUp()
        self.protocol, self.transport = self.connect()
        session = self.protocol.session
        assert session is not None
        self.session: Session = session
        self.rooms: list[int] = []

    def received(self, data: bytes, room: int) -> bytes:
        """What the socket gives."""
        self.rooms.append(room)
        return data[:room]

    def serve(self, data: bytes, event: int = EPOLLIN) -> list[tuple[int, int]]:
        """The events that are left to the ordinary way."""
        self.session.recv = partial(self.received, data)
        with self.runtime.turn():
            unusual = self.runtime.pump.serve([(7, event)], {7: self.session})
        return unusual

    def again(self) -> int:
        """How many sockets are to be looked at again."""
        waiting, self.runtime.pump.again = self.runtime.pump.again, []
        return len(waiting)

    def test_rooms(self) -> None:
        """A client that fills its buffer gets a larger one and is looked at again; one that sends
        little has a small one."""
        filled = []
        for size in (94, 95, 448, 4_096, 65_536, 65_536, 4_096, 4_095, 447, 10, 27, 28):
            self.session.parser = type(self.session.parser)()
            self.serve(b"+" * size)
            filled.append(self.again())
        self.assertEqual(
            [95, 95, 448, 4_096, 65_536, 65_536, 65_536, 65_536, 65_536, 448, 448, 448],
            self.rooms,
        )
        self.assertEqual([0, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0], filled)

    def test_left(self) -> None:
        """What is no ordinary input is left to the protocol: an end, a socket without this way,
        and one that is not known."""
        event = (7, EPOLLIN)
        self.assertEqual([event], self.serve(b""))
        self.assertEqual([(7, EPOLLIN | EPOLLHUP)], self.serve(b"x", EPOLLIN | EPOLLHUP))
        with self.runtime.turn():
            self.session.recv = None
            served = self.runtime.pump.serve([event, (8, EPOLLIN)], {7: self.session})
        self.assertEqual(([event, (8, EPOLLIN)], 0), (served, self.again()))

    def test_late(self) -> None:
        """A client whose requests wait for another turn is not read, and is looked at again."""
        self.session.late = True
        self.assertEqual(([], []), (self.serve(b"PING\r\n"), self.rooms))
        self.assertEqual(1, self.again())

    def test_counted(self) -> None:
        """INFO counts each byte once, and a client that sends or gets something is not idle."""
        stats = self.server.stats
        self.reactor.advance(5)
        before = (stats.net_input_bytes, stats.net_output_bytes)
        self.serve(b"PING\r\n")
        counted = (stats.net_input_bytes - before[0], stats.net_output_bytes - before[1])
        self.assertEqual((6, 7), counted)
        self.assertEqual(self.node.now_ms, self.session.seen_ms)
