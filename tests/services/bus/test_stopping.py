"""The end of the connections between a node and other nodes."""

from __future__ import annotations

import socket

from disque_tx.messages.bus import QueueSignal
from disque_tx.messages.bustypes import NEEDJOBS, PING
from tests.services.bus.bench import OTHER, BusCase


class StopTests(BusCase):
    """The bus stops."""

    def test_stop(self) -> None:
        """Everything is closed, pending work is cancelled, and nothing is left."""
        self.start()
        entry, other = self.called()
        caller = self.call()
        with socket.create_server(("127.0.0.1", 0)) as server:
            second = self.entry(server.getsockname()[1], b"3" * 40)
            with self.runtime.turn() as node:
                node.cluster.tick()
        self.stop()
        self.assertEqual(
            ([PING, -1], [-1]), (self.received_types(other), self.received_types(caller))
        )
        self.assertEqual((None, False), (entry.link, second.connecting))
        self.runtime.stop()
        self.assertEqual([], self.reactor.getDelayedCalls())
        self.assertEqual(([self.hub], []), (self.reactor.getReaders(), self.reactor.getWriters()))

    def test_stop_does_not_wait_for_ever(self) -> None:
        """A peer that does not read cannot keep this node from stopping."""
        self.start()
        entry, _other = self.called()
        link = entry.link
        assert link is not None
        message = QueueSignal(NEEDJOBS, b"q" * 300_000, 0)
        message.sender = OTHER
        for _ in range(30):
            with self.runtime.turn():
                link.sink.send(message)
        stopped = self.bus.stopService()
        self.assertNoResult(stopped)
        self.settle(3_000)
        self.successResultOf(stopped)

    def test_no_more_connections(self) -> None:
        """A bus that has stopped makes no connection, although the node wants one."""
        self.start()
        self.stop()
        with socket.create_server(("127.0.0.1", 0)) as server:
            server.setblocking(False)
            entry = self.entry(server.getsockname()[1])
            self.tick()
            self.assertRaises(BlockingIOError, server.accept)
        self.assertIsNone(entry.link)
