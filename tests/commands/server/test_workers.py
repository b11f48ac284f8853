"""CLIENT ANNOUNCE: what workers say about themselves, and who learns of it."""

from __future__ import annotations

from typing import Any

from disque_tx.commands.base.announcements import ANNOUNCED_MAX
from disque_tx.commands.base.readonly import check_reader
from disque_tx.commands.server.clients import client
from disque_tx.commands.server.workers import workers_question
from disque_tx.core.base.client import Client
from disque_tx.errors import CommandError
from tests.commands.desk import OK, DeskCase


class AnnounceTests(DeskCase):
    """Texts of connections."""

    def announce(self, who: Client, text: bytes) -> None:
        """CLIENT ANNOUNCE by this client."""
        self.client = who
        self.assertEqual(OK, self.call(client, b"CLIENT", b"announce", text))

    def rows(self, first: int = 0, count: int = 500) -> list[Any]:
        """The rows of the question, without their names."""
        reply = self.call(workers_question, b"WORKERS", b"%d" % first, b"%d" % count)
        assert isinstance(reply, list)
        self.total, rows = reply
        assert isinstance(rows, list)
        return rows

    def pass_ms(self, ms: int) -> None:
        """Time passes."""
        self.node.begin(self.node.now_ms + ms, self.node.wall_us)

    def leave(self, who: Client) -> None:
        """The connection of this client ends."""
        del self.server.clients[who.id]

    def test_latest(self) -> None:
        """A connection has one text, the latest; an empty one takes it back."""
        worker = self.connect(b"10.0.0.1:5")
        self.announce(worker, b"one")
        self.pass_ms(70_000)
        self.announce(worker, b"t\xff\r\n")
        self.pass_ms(1_500)
        row = [worker.id, b"10.0.0.1:5", b"", 1, 1_500, b"t\xff\r\n"]
        self.assertEqual([row], self.rows())
        self.announce(worker, b"")
        self.assertEqual([], self.rows())

    def test_gone(self) -> None:
        """A worker whose connection has ended is seen for a minute; one that hangs, as long as its
        connection lasts."""
        crashed, hangs = self.connect(b"a:1"), self.connect(b"b:1")
        for one in (crashed, hangs):
            self.announce(one, b"x")
        self.leave(crashed)
        self.pass_ms(60_000)
        self.assertEqual([[b"a:1", 0], [b"b:1", 1]], [row[1:4:2] for row in self.rows()])
        self.pass_ms(1)
        self.assertEqual([b"b:1"], [row[1] for row in self.rows()])

    def test_named(self) -> None:
        """Workers of earlier versions, which only have a name, come last."""
        former, worker = self.connect(b"a:1"), self.connect(b"b:1")
        former.name = b"disque-worker/old/8/1/mail"
        self.connect(b"c:1").name = b"disque-work"
        worker.name = b"disque-worker/new/8/1/mail"
        self.announce(worker, b"x")
        expected = [
            [worker.id, b"b:1", worker.name, 1, 0, b"x"],
            [former.id, b"a:1", former.name, 1, -1, b""],
        ]
        self.assertEqual(expected, self.rows())
        self.assertEqual(expected[1:], self.rows(1))
        self.assertEqual((expected[:1], 2), (self.rows(0, 1), self.total))
        self.assertEqual([], self.rows(2))

    def test_bounded(self) -> None:
        """Neither one text nor all of them, nor an answer, can become as large as a client
        wants."""
        line = b"ERR CLIENT ANNOUNCE takes 4096 bytes at most"
        self.assert_refused(line, client, b"CLIENT", b"ANNOUNCE", b"x" * 4_097)
        many = [self.connect(b"a:%d" % number) for number in range(ANNOUNCED_MAX + 1)]
        for one in many[:-1]:
            self.announce(one, b"x" * 4_096)
        self.client = many[-1]
        line = b"ERR Too many clients have announced something"
        self.assert_refused(line, client, b"CLIENT", b"ANNOUNCE", b"x")
        self.assertEqual((32, ANNOUNCED_MAX), (len(self.rows()), self.total))
        self.leave(many[0])
        self.pass_ms(60_001)
        self.announce(many[-1], b"x")
        for words in ((b"-1", b"1"), (b"0", b"0"), (b"0", b"501"), (b"0", b"x")):
            self.assert_refused(b"ERR syntax error", workers_question, b"WORKERS", *words)

    def test_reader(self) -> None:
        """Who may only look is no worker."""
        argv = [b"CLIENT", b"ANNOUNCE", b"x"]
        self.assertRaises(CommandError, check_reader, b"client", argv)
        check_reader(b"ask", [b"ASK", b"CLUSTER", b"WORKERS", b"0", b"1"])
