"""Strangers on the bus of a node that works (cluster protocol, section 6)."""

from __future__ import annotations

import resource
import socket

from tests.acceptance.cluster import strangers
from tests.acceptance.cluster.fleet import FleetTestCase
from tests.acceptance.cluster.node import Node
from tests.acceptance.daemon import BUS_OFFSET

_GROWTH_BYTES_MAX = 48 * 1024 * 1024


class StrangerTests(FleetTestCase):
    """Three nodes; the first is attacked, and afterwards serves as it did before."""

    size = 3

    def setUp(self) -> None:
        """Note what the victim was like."""
        super().setUp()
        self.victim: Node = self.nodes[0]
        self.kept = self.victim.add("kept", replicate=3)
        self.table = set(self.victim.table())
        self.pid = self.victim.pid
        self.memory = self.resident()
        self.addCleanup(self.unharmed)

    def resident(self) -> int:
        """Bytes of memory the process has."""
        return int(self.victim.info()["used_memory_rss"])

    def unharmed(self) -> None:
        """It is the same process in the same cluster, with the same jobs and no more memory."""
        self.assertEqual(self.pid, self.victim.pid)
        self.assertEqual(self.table, set(self.victim.table()))
        self.assertLess(self.resident() - self.memory, _GROWTH_BYTES_MAX)
        self.assertEqual([self.kept], self.victim.get("kept"))
        self.assertEqual(40, len(self.victim.add(self.queue, replicate=3)))
        self.assertNotIn("A fault in this program", self.victim.log())
        self.fleet.agreed()

    def stranger(self) -> socket.socket:
        """A connection to the victim's bus."""
        sock = socket.create_connection((self.victim.ip, self.victim.port + BUS_OFFSET), 10)
        self.addCleanup(sock.close)
        return sock

    def closed(self, sock: socket.socket, timeout_s: float = 10) -> bool:
        """Whether the victim hangs up, whatever it says before."""
        sock.settimeout(timeout_s)
        try:
            while sock.recv(65_536):
                pass
        except TimeoutError:
            return False
        except ConnectionError:
            pass
        return True

    def say(self, *messages: bytes) -> None:
        """Each on a connection of its own, and once more all on one, with a PING behind."""
        for message in messages:
            self.send(message)
        self.send(b"".join(messages) + strangers.ping())

    def send(self, data: bytes) -> None:
        """Send, wait until the victim has read it, and hang up."""
        sock = self.stranger()
        try:
            sock.sendall(data)
            sock.shutdown(socket.SHUT_WR)
        except ConnectionError:
            return
        self.assertTrue(self.closed(sock))
        sock.close()

    def senders(self) -> tuple[str, str, str]:
        """Whom a stranger may pretend to be: nobody known, the victim itself, one of its peers."""
        return strangers.NOBODY, self.victim.id, self.nodes[1].id

    # -- tests -------------------------------------------------------------------------------

    def test_huge_header(self) -> None:
        """Nothing is allocated because a header announces it; such connections are closed."""
        for size in (0xFFFFFFFF, 0x80000000, 0x7FFFFFFF, 100 * 1024 * 1024):
            sock = self.stranger()
            sock.sendall(strangers.huge_header(size))
            self.assertTrue(self.closed(sock))
        self.assertEqual("PONG", self.victim.call("PING"))

    def test_too_short(self) -> None:
        """Lengths that do not even hold the header end the connection, too."""
        for size in (0, 1, 8, 143):
            sock = self.stranger()
            sock.sendall(strangers.huge_header(size))
            self.assertTrue(self.closed(sock))

    def test_node_count(self) -> None:
        """A number of nodes that wraps to a small number of bytes is no job."""
        before = self.victim.jobs()
        for sender in self.senders():
            self.say(strangers.node_count(0x06666667, sender))
            self.say(strangers.node_count(0xFFFFFFFF, sender))
        self.assertEqual(before, self.victim.jobs())

    def test_own_name(self) -> None:
        """Nobody speaks as the node itself, also if all else is right."""
        before = self.victim.jobs()
        whole = strangers.sent_by(strangers.recorded("REPLJOB"), self.victim.id)
        self.say(bytes(whole), strangers.ping(self.victim.id))
        self.assertEqual(before, self.victim.jobs())

    def test_unknown_sender(self) -> None:
        """Who is not in the table can neither bring jobs nor take them."""
        before = self.victim.jobs()
        whole = strangers.sent_by(strangers.recorded("REPLJOB"), strangers.NOBODY)
        self.say(bytes(whole), strangers.many_jobs(1, strangers.NOBODY))
        self.assertEqual(before, self.victim.jobs())

    def test_wrapping_sizes(self) -> None:
        """Sizes and counts that wrap, or that do not fit to each other, mean nothing."""
        sizes = (0xFFFFFFFF, 0xFFFFFFF8, 0x80000000, 0)
        for sender in self.senders():
            for size in sizes:
                self.say(strangers.data_size(size, sender), strangers.queue_length(size, sender))
            self.say(*[strangers.gossip_count(count, sender) for count in (1, 0x7FFF, 0xFFFF)])
            self.say(*[strangers.unknown_type(number, sender) for number in (16, 0xFFFF)])

    def test_truncated_jobs(self) -> None:
        """A job that ends anywhere is no job."""
        before = self.victim.jobs()
        for sender in self.senders():
            messages = strangers.truncated_jobs(sender)
            self.assertGreater(len(messages), 150)
            self.send(b"".join(messages))
            self.say(*messages[::40])
        self.assertEqual(before, self.victim.jobs())

    def test_rubbish(self) -> None:
        """Whoever does not speak the protocol is cut off."""
        for data in (b"GET / HTTP/1.0\r\n\r\n", b"*1\r\n$4\r\nPING\r\n" * 20, bytes(1 << 20)):
            sock = self.stranger()
            try:
                sock.sendall(data)
            except ConnectionError:
                continue
            self.assertTrue(self.closed(sock))

    def test_meet(self) -> None:
        """Who is not on the list of those who may introduce themselves stays outside."""
        self.assertEqual(
            "OK", self.victim.call("CONFIG", "SET", "cluster-meet-allow", "10.0.0.0/8")
        )
        self.addCleanup(self.victim.call, "CONFIG", "SET", "cluster-meet-allow", "")
        self.assertEqual(strangers.HEADER_BYTES, len(strangers.meet()))
        for _ in range(50):
            self.send(strangers.meet())
        self.holds(lambda: set(self.victim.table()) == self.table, 1, "nobody joins")

    def test_many_meets(self) -> None:
        """Without a list the room for introductions is bounded, and is free again after a while."""
        for number in range(500):
            self.send(strangers.meet(f"{number:040x}"))
        self.assertLess(len(self.victim.table()), 100)
        self.wait(lambda: set(self.victim.table()) == self.table, "they are gone")

    def test_idle(self) -> None:
        """Two thousand strangers who say nothing keep nobody from working."""
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, max(soft, 4096)), hard))
        self.addCleanup(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        socks = [self.stranger() for _ in range(2000)]
        for _ in range(100):
            self.assertEqual(40, len(self.victim.add(self.queue, replicate=3)))
        # The oldest had to make room; the last ones are served.
        self.assertTrue(self.closed(socks[0]))
        socks[-1].sendall(strangers.ping())
        self.assertEqual(b"DbuZ", socks[-1].recv(4))
        self.fleet.agreed()
        for sock in socks:
            sock.close()

    def test_half_messages(self) -> None:
        """What many strangers began and did not finish costs no more than they sent."""
        socks = [self.stranger() for _ in range(500)]
        for sock in socks:
            sock.sendall(strangers.huge_header(64 * 1024))
        self.assertEqual("PONG", self.victim.call("PING"))
        self.assertLess(self.resident() - self.memory, _GROWTH_BYTES_MAX)

    def test_one_byte_at_a_time(self) -> None:
        """Slow strangers are understood, and slow nobody else down."""
        sock = self.stranger()
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for byte in strangers.ping():
            sock.sendall(bytes([byte]))
            self.assertEqual("PONG", self.victim.call("PING"))
        self.assertEqual(b"DbuZ", sock.recv(4))
