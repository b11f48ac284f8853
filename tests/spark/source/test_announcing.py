"""How a stream describes itself to its nodes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from disque_tx.protocols.http.api.workers import read
from disque_tx.spark.options import ReadOptions, read_options
from disque_tx.spark.source.announcing import QueryAnnouncer, QueryIdentity, description, identity
from disque_tx.spark.source.lag import Waiting
from tests.client.scripted import ScriptedNode
from tests.spark.nodes import NodesTestCase, counts

_WHO = QueryIdentity("0" * 16, "x")
_REFUSED = b"-ERR Syntax error, try CLIENT (LIST | KILL ip:port)\r\n"


class AnnouncingTests(NodesTestCase):
    """Texts, and scripted nodes that take them."""

    def setUp(self) -> None:
        super().setUp()
        self.checkpoint = Path(self.mktemp()).resolve()

    def options(self, *nodes: ScriptedNode, **more: str) -> ReadOptions:
        """The options of a stream from these nodes."""
        servers = ",".join(node.address for node in nodes) or "127.0.0.1:1"
        given = {"disque.servers": servers, "subscribe": "q", **more}
        return read_options({**given, "checkpointLocation": str(self.checkpoint)}, streaming=True)

    def texts(self, node: ScriptedNode) -> list[dict[str, Any]]:
        """The texts that a node got."""
        return [json.loads(words[2]) for words in node.requests if words[1] == b"ANNOUNCE"]

    def test_identity(self) -> None:
        """A query is the same one after a restart, and another one with another checkpoint; it is
        called by its name, or by the ID that Spark gave it."""
        unknown = identity(self.options())
        self.checkpoint.mkdir()
        (self.checkpoint / "metadata").write_text('{"id":"6f1c07bd-7d3b-2a55-8000-000000000000"}')
        known = identity(self.options())
        self.assertEqual(("6f1c07bd", True), (known.name, known.id.isalnum()))
        self.assertNotEqual(unknown.id, known.id)
        named = identity(self.options(queryName="into the lake"))
        self.assertEqual(QueryIdentity(known.id, "into the lake"), named)
        for damaged in ("", "[]", "{", "7", '{"no": 1}'):
            (self.checkpoint / "metadata").write_text(damaged)
            self.assertEqual(unknown, identity(self.options()))

    def test_described(self) -> None:
        """The HTTP API reads what a query writes: who it is, what it holds, and how many jobs wait
        in its queues, those of most jobs first."""
        behind = {"q": Waiting(12_000, 3, 31_500), "r": Waiting(), "s": Waiting(20_000)}
        found = read(description(_WHO, self.options(), 400, behind))
        assert found is not None
        self.assertEqual(
            ("Spark query x", 400, 50_000, "taking", ["q"], False),
            tuple(found[name] for name in ("worker", "held", "slots", "state", "queues", "cut")),
        )
        rows = [tuple(row.values()) for row in found["behind"]]
        self.assertEqual([("s", 20_000, 0), ("q", 12_000, 31.5), ("r", 0, 0)], rows)

    def test_bounded(self) -> None:
        """However many queues there are, and however they are named, a node takes the text."""
        names = [f"{number}{'é' * 1000}" for number in range(100)]
        options = self.options(subscribe=",".join(names))
        behind = {name: Waiting(number) for number, name in enumerate(names)}
        text = description(QueryIdentity("1", "\ud800" * 9_999), options, 1, behind)
        self.assertLessEqual(len(text), 4_096)
        found = read(text)
        assert found is not None
        self.assertTrue(found["cut"])
        self.assertTrue(found["behind"][0]["queue"].startswith("99é"))

    def test_nodes(self) -> None:
        """Each node gets to know how many jobs wait at all of them."""
        nodes = [self.node(QCOUNT=counts(number), CLIENT=b"+OK\r\n") for number in (3, 4)]
        announcer = QueryAnnouncer(self.options(*nodes))
        announcer.held = 5
        self.assertTrue(announcer.announce())
        announcer.stop()
        for node in nodes:
            (values,) = self.texts(node)
            self.assertEqual((5, 7), (values["held"], values["behind"][0]["queued"]))

    def test_refused(self) -> None:
        """A cluster of originals, which know no such command, is left alone; one that has an
        original among others is not; and one that is away for a moment is tried again."""
        original = self.node(QCOUNT=b"-ERR unknown command 'QCOUNT'\r\n", QLEN=b":5\r\n")
        original.answer("CLIENT", _REFUSED)
        other = self.node(QCOUNT=counts(1), CLIENT=b"+OK\r\n")
        for nodes, again in (((original,), False), ((original, other), True), ((), True)):
            announcer = QueryAnnouncer(self.options(*nodes))
            self.assertIs(again, announcer.announce())
            announcer.stop()
