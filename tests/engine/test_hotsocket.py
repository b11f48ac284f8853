"""What is sent and received at once, and what is left to the owner of a socket."""

from __future__ import annotations

import errno
import socket

from twisted.trial.unittest import SynchronousTestCase

from disque_tx.engine.hotsocket import receive, send_now


class Owner:
    """Keeps what is left to it."""

    def __init__(self) -> None:
        self.rest = b""
        self.errors: list[int | None] = []

    def write(self, data: bytes) -> None:
        """The rest of the bytes."""
        self.rest += data

    def broken(self, error: OSError) -> None:
        """Why the socket does not send."""
        self.errors.append(error.errno)


class HotSocketTests(SynchronousTestCase):
    """A pair of sockets that do not block."""

    def setUp(self) -> None:
        self.near, self.far = socket.socketpair()
        for sock in (self.near, self.far):
            sock.setblocking(False)
            self.addCleanup(sock.close)
        self.owner = Owner()

    def send(self, data: bytes) -> bool:
        """What it returns."""
        return send_now(self.near.send, data, self.owner)

    def test_received(self) -> None:
        """A socket with nothing to read is told apart from one that has ended."""
        self.assertIsNone(receive(self.far.recv, 10))
        self.assertTrue(self.send(b"hello"))
        self.assertEqual((b"hel", b"lo"), (receive(self.far.recv, 3), receive(self.far.recv, 3)))
        self.near.close()
        self.assertEqual(b"", receive(self.far.recv, 3))
        self.far.close()
        self.assertEqual(b"", receive(self.far.recv, 3))

    def test_full(self) -> None:
        """Of what the socket does not take no byte is lost, nor sent twice."""
        data = b"0123456789" * 300_000
        self.assertTrue(self.send(data))
        self.assertTrue(self.send(b"more"))
        taken = b""
        while piece := receive(self.far.recv, 1 << 20):
            taken += piece
        self.assertEqual(data + b"more", taken + self.owner.rest)
        self.assertNotEqual((b"", b""), (taken, self.owner.rest))

    def test_broken(self) -> None:
        """The owner of a socket that fails is told why, once, and gets no bytes."""
        self.far.close()
        self.assertFalse(self.send(b"x"))
        self.assertEqual(([errno.EPIPE], b""), (self.owner.errors, self.owner.rest))

    def test_slow_way(self) -> None:
        """Connections of other kinds, such as TLS, are written to by their owner alone."""
        self.assertTrue(send_now(None, b"x", self.owner))
        self.assertEqual(b"x", self.owner.rest)
