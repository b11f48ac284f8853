"""Our own links: reconnected after failures, dropped when they are not needed."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from disque_tx.core.base.outbox import Outbox
from disque_tx.core.nodes.links import Links
from disque_tx.core.nodes.membership import Membership
from disque_tx.messages.bus import BusSink
from disque_tx.messages.nodes import MYSELF, NOADDR, Link, NodeEntry

T_MS = 15_000


class LinksTests(SynchronousTestCase):
    """One other node."""

    def setUp(self) -> None:
        self.chance = 0.0
        self.membership = Membership(NodeEntry(b"a" * 40, b"", 7711, MYSELF, 0), lambda: b"")
        self.outbox = Outbox()
        self.links = Links(self.membership, self.outbox, lambda: self.chance)
        self.entry = NodeEntry(b"b" * 40, b"10.0.0.1", 7711, 0, 0)
        self.membership.add(self.entry)

    def link(self) -> Link:
        """A connection to the other node."""
        return Link(BusSink(), self.entry, b"10.0.0.1", b"::1", 0, 1)

    def wait_ms(self, now_ms: int, node_timeout_ms: int = T_MS) -> int:
        """The delay between a failure and the next attempt."""
        self.links.failed(self.entry, now_ms, node_timeout_ms)
        return int(self.entry.retry_ms - now_ms)

    def test_called_once(self) -> None:
        """While a link is being connected no other one is; the node timeout starts with the first
        attempt."""
        self.links.call(self.entry, 50)
        self.links.call(self.entry, 150)
        self.assertEqual([self.entry], self.outbox.connects)
        self.assertEqual((True, 50), (self.entry.connecting, self.entry.ping_sent_ms))

    def test_back_off(self) -> None:
        """A dead node is tried less and less often, but is reconnected within two seconds of its
        return."""
        waits = [self.wait_ms(1_000) for _ in range(6)]
        self.assertEqual([200, 400, 800, 1_600, 1_875, 1_875], waits)
        self.assertEqual(2_000, self.wait_ms(0, 600_000))
        self.assertEqual(100, self.wait_ms(0, 10))

    def test_jitter(self) -> None:
        """Nodes that lost the same peer do not all reconnect at the same moment."""
        self.chance = 0.999
        self.assertEqual(249, self.wait_ms(0))

    def test_too_early(self) -> None:
        """The next attempt waits for the backoff, unless a message from the node arrives."""
        self.wait_ms(1_000)
        self.links.call(self.entry, 1_199)
        self.assertEqual([], self.outbox.connects)
        self.links.reset_backoff(self.entry)
        self.links.call(self.entry, 1_199)
        self.assertEqual([self.entry], self.outbox.connects)
        self.assertEqual(0, self.entry.attempts)

    def test_lost(self) -> None:
        """A link that worked is reconnected at once; one that never did counts as a failure."""
        for sender, retry_ms in ((b"b" * 40, 0), (b"", 1_200)):
            link = self.link()
            self.assertEqual(True, self.links.up(self.entry, link))
            link.peer_id = sender
            self.links.lost(link, 1_000, T_MS)
            self.assertEqual((None, retry_ms), (self.entry.link, self.entry.retry_ms))

    def test_other_link_lost(self) -> None:
        """Closing an older or accepted connection does not affect the link in use."""
        link = self.link()
        self.links.up(self.entry, link)
        self.links.lost(self.link(), 5, T_MS)
        self.links.lost(Link(BusSink(), None, b"::1", b"::1", 0, 0), 5, T_MS)
        self.assertIs(link, self.entry.link)

    def test_unwanted(self) -> None:
        """A link that is no longer needed is closed: its node is gone, already linked, or has
        moved."""
        first, second, third, fourth = (self.link() for _ in range(4))
        self.links.up(self.entry, first)
        self.assertEqual(False, self.links.up(self.entry, second))
        self.links.hang_up(self.entry)
        self.links.call(self.entry, 0)
        self.links.readdress(self.entry, b"10.0.0.9", 7711, 0)
        self.assertEqual(False, self.links.up(self.entry, third))
        self.links.drop(self.entry)
        self.assertEqual(False, self.links.up(self.entry, fourth))
        self.assertEqual([second, first, third, fourth], self.outbox.hangups)

    def test_moved(self) -> None:
        """A node that moved is tried at its new address at once, though the old one failed."""
        self.wait_ms(1_000)
        self.links.call(self.entry, 2_000)
        self.links.readdress(self.entry, b"10.0.0.9", 7712, 9_000)
        self.links.failed(self.entry, 2_001, T_MS)
        self.links.call(self.entry, 2_001)
        self.assertEqual([self.entry, self.entry], self.outbox.connects)
        entry = self.entry
        self.assertEqual((b"10.0.0.9", 7712, 9_000), (entry.ip, entry.port, entry.bus_port))
        self.assertEqual(True, self.membership.changed)
        # The link to the new address is none that has become superfluous.
        self.assertEqual(True, self.links.up(self.entry, self.link()))

    def test_lose_address(self) -> None:
        """A node at whose address another node answers is not contacted until it announces its
        address."""
        link = self.link()
        self.links.up(self.entry, link)
        self.entry.bus_port = 9_000
        self.links.lose_address(self.entry)
        entry = self.entry
        left = (entry.flags, entry.ip, entry.port, entry.bus_port)
        self.assertEqual((NOADDR, b"", 0, 0), left)
        self.assertEqual([link], self.outbox.hangups)
        self.links.readdress(self.entry, b"10.0.0.9", 7712, 0)
        self.assertEqual(0, self.entry.flags)
