"""Messages from strangers on the bus of a working node (cluster protocol, section 6)."""

from __future__ import annotations

import resource
import socket

from tests.acceptance.cluster import strangers
from tests.acceptance.cluster.fleet import FleetTestCase
from tests.acceptance.cluster.node import Node
from tests.acceptance.daemon import BUS_OFFSET

_GROWTH_BYTES_MAX = 48 * 1024 * 1024


class StrangerTests(FleetTestCase):
    """Three nodes; the first is attacked, and must work as before afterwards."""

    size = 3

    def setUp(self) -> None:
        """Record the state of the victim."""
        super().setUp()
        self.victim: Node = self.nodes[0]
        self.kept = self.victim.add("kept", replicate=3)
        self.table = set(self.victim.table())
        self.pid = self.victim.pid
        self.memory = self.resident()
        self.addCleanup(self.assert_unharmed)

    def resident(self) -> int:
        """The resident memory of the process in bytes."""
        return int(self.victim.info()["used_memory_rss"])

    def assert_unharmed(self) -> None:
        """Assert that it is the same process, in the same cluster, with the same jobs and no more
        memory."""
        self.assertEqual(self.pid, self.victim.pid)
        self.assertEqual(self.table, set(self.victim.table()))
        self.assertLess(self.resident() - self.memory, _GROWTH_BYTES_MAX)
        self.assertEqual([self.kept], self.victim.get("kept"))
        self.assertEqual(40, len(self.victim.add(self.queue, replicate=3)))
        self.assertNotIn("A fault in this program", self.victim.log())
        self.fleet.wait_until_agreed()

    def stranger(self) -> socket.socket:
        """A connection to the victim's bus."""
        sock = socket.create_connection((self.victim.ip, self.victim.port + BUS_OFFSET), 10)
        self.addCleanup(sock.close)
        return sock

    def closed(self, sock: socket.socket, timeout_s: float = 10) -> bool:
        """Whether the victim closes the connection, whatever it sends before."""
        sock.settimeout(timeout_s)
        try:
            while sock.recv(65_536):
                pass
        except TimeoutError:
            return False
        except ConnectionError:
            pass
        return True

    def send_each(self, *messages: bytes) -> None:
        """Send each message on a connection of its own, and then all on one, followed by a PING."""
        for message in messages:
            self.send(message)
        self.send(b"".join(messages) + strangers.ping())

    def send(self, data: bytes) -> None:
        """Send bytes, wait until the victim has read them, and close the connection."""
        sock = self.stranger()
        try:
            sock.sendall(data)
            sock.shutdown(socket.SHUT_WR)
        except OSError:
            # The victim closed the connection first.
            return
        self.assertTrue(self.closed(sock))
        sock.close()

    def senders(self) -> tuple[str, str, str]:
        """The node IDs that a stranger may claim: an unknown one, that of the victim, and that of
        another member."""
        return strangers.NOBODY, self.victim.id, self.nodes[1].id

    # -- tests -------------------------------------------------------------------------------

    def test_huge_header(self) -> None:
        """No memory is allocated for a length that only a header announces; such connections are
        closed."""
        for size in (0xFFFFFFFF, 0x80000000, 0x7FFFFFFF, 100 * 1024 * 1024):
            sock = self.stranger()
            sock.sendall(strangers.huge_header(size))
            self.assertTrue(self.closed(sock))
        self.assertEqual("PONG", self.victim.call("PING"))

    def test_too_short(self) -> None:
        """A length smaller than a header closes the connection, too."""
        for size in (0, 1, 8, 143):
            sock = self.stranger()
            sock.sendall(strangers.huge_header(size))
            self.assertTrue(self.closed(sock))

    def test_node_count(self) -> None:
        """A number of nodes that overflows to a small number of bytes makes a job invalid."""
        before = self.victim.jobs()
        for sender in self.senders():
            self.send_each(strangers.node_count(0x06666667, sender))
            self.send_each(strangers.node_count(0xFFFFFFFF, sender))
        self.assertEqual(before, self.victim.jobs())

    def test_own_id(self) -> None:
        """A message with the node's own ID as its sender is ignored, even if it is otherwise
        valid."""
        before = self.victim.jobs()
        whole = strangers.sent_by(strangers.recorded("REPLJOB"), self.victim.id)
        self.send_each(bytes(whole), strangers.ping(self.victim.id))
        self.assertEqual(before, self.victim.jobs())

    def test_unknown_sender(self) -> None:
        """A sender that is not a member can neither add jobs nor get them."""
        before = self.victim.jobs()
        whole = strangers.sent_by(strangers.recorded("REPLJOB"), strangers.NOBODY)
        self.send_each(bytes(whole), strangers.many_jobs(1, strangers.NOBODY))
        self.assertEqual(before, self.victim.jobs())

    def test_wrapping_sizes(self) -> None:
        """Messages whose sizes and counts overflow or do not match are ignored."""
        sizes = (0xFFFFFFFF, 0xFFFFFFF8, 0x80000000, 0)
        for sender in self.senders():
            for size in sizes:
                self.send_each(
                    strangers.data_size(size, sender), strangers.queue_length(size, sender)
                )
            self.send_each(
                *[strangers.gossip_count(count, sender) for count in (1, 0x7FFF, 0xFFFF)]
            )
            self.send_each(*[strangers.unknown_type(number, sender) for number in (16, 0xFFFF)])

    def test_truncated_jobs(self) -> None:
        """A truncated job is ignored, wherever it is cut."""
        before = self.victim.jobs()
        for sender in self.senders():
            messages = strangers.truncated_jobs(sender)
            self.assertGreater(len(messages), 150)
            self.send(b"".join(messages))
            self.send_each(*messages[::40])
        self.assertEqual(before, self.victim.jobs())

    def test_other_protocols(self) -> None:
        """Connections with another protocol are closed."""
        for data in (b"GET / HTTP/1.0\r\n\r\n", b"*1\r\n$4\r\nPING\r\n" * 20, bytes(1 << 20)):
            sock = self.stranger()
            try:
                sock.sendall(data)
            except ConnectionError:
                continue
            self.assertTrue(self.closed(sock))

    def test_meet(self) -> None:
        """Only hosts in ``cluster-meet-allow`` can join by a MEET."""
        self.assertEqual(
            "OK", self.victim.call("CONFIG", "SET", "cluster-meet-allow", "10.0.0.0/8")
        )
        self.addCleanup(self.victim.call, "CONFIG", "SET", "cluster-meet-allow", "")
        self.assertEqual(strangers.HEADER_BYTES, len(strangers.meet()))
        for _ in range(50):
            self.send(strangers.meet())
        self.stays_true(lambda: set(self.victim.table()) == self.table, 1, "no node joins")

    def test_many_meets(self) -> None:
        """Without that list, the number of nodes in handshake is limited, and they are removed
        after a while."""
        for number in range(500):
            self.send(strangers.meet(f"{number:040x}"))
        self.assertLess(len(self.victim.table()), 100)
        self.wait(lambda: set(self.victim.table()) == self.table, "the handshakes are removed")

    def test_idle(self) -> None:
        """Two thousand idle connections of strangers do not keep the node from working."""
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, max(soft, 4096)), hard))
        self.addCleanup(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        socks = [self.stranger() for _ in range(2000)]
        for _ in range(100):
            self.assertEqual(40, len(self.victim.add(self.queue, replicate=3)))
        # The oldest connections were closed to make room; the last ones are served.
        self.assertTrue(self.closed(socks[0]))
        socks[-1].sendall(strangers.ping())
        self.assertEqual(b"DbuZ", socks[-1].recv(4))
        self.fleet.wait_until_agreed()
        for sock in socks:
            sock.close()

    def test_half_messages(self) -> None:
        """Incomplete messages of many strangers use no more memory than was sent."""
        socks = [self.stranger() for _ in range(500)]
        for sock in socks:
            sock.sendall(strangers.huge_header(64 * 1024))
        self.assertEqual("PONG", self.victim.call("PING"))
        self.assertLess(self.resident() - self.memory, _GROWTH_BYTES_MAX)

    def test_one_byte_at_a_time(self) -> None:
        """A slow stranger gets its reply, and delays no client."""
        sock = self.stranger()
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for byte in strangers.ping():
            sock.sendall(bytes([byte]))
            self.assertEqual("PONG", self.victim.call("PING"))
        self.assertEqual(b"DbuZ", sock.recv(4))
