"""Lists about a node, in pages, and what is hidden in them."""

from __future__ import annotations

from typing import Any

from tests.protocols.http.api.queues.test_queues import SlicedCase

_V1 = "/api/v1"


class ClientTests(SlicedCase):
    """Clients of a node."""

    def setUp(self) -> None:
        super().setUp()
        self.call(b"CONFIG", b"SET", b"maxclients", b"500")
        self.channels = [self.connect(f"127.0.0.{number}") for number in range(130)]

    def page(self, words: str) -> tuple[int, list[str]]:
        """The total, and the hosts on a page."""
        answer = self.slow("GET", f"{_V1}/clients?{words}").json
        return answer["total"], [one["addr"].split(":")[0] for one in answer["clients"]]

    def test_pages(self) -> None:
        """Each client is on one page, in the order in which they came; a page beyond the end is
        empty, and says how many there are."""
        for channel, _transport in self.channels[100:]:
            self.hang_up(channel)
        total, first = self.page("limit=1000")
        self.assertEqual(101, total, "with the one that asks")
        self.assertEqual([f"127.0.0.{number}" for number in range(100)], first[:100])
        for words, found in (
            ("limit=1", first[:1]), ("limit=100", first[:100]), ("limit=3&offset=0", first[:3]),
            ("limit=3&offset=1", first[1:4]), ("limit=3&offset=99", first[99:]),
            ("limit=3&offset=101", []), ("limit=3&offset=102", []),
        ):  # fmt: skip
            self.assertEqual((101, found), self.page(words), words)

    def test_many(self) -> None:
        """More clients than a node tells at once are asked for again."""
        total, found = self.page("limit=129")
        self.assertEqual((131, [f"127.0.0.{number}" for number in range(129)]), (total, found))
        total, found = self.page("limit=120&offset=5")
        self.assertEqual([f"127.0.0.{number}" for number in range(5, 125)], found)


class PastTests(SlicedCase):
    """What was slow, and what is secret."""

    def got(self, path: str) -> Any:
        """An answer."""
        return self.slow("GET", f"{_V1}/{path}").json

    def test_slowlog(self) -> None:
        """The slowest requests come newest first, as many as are asked for."""
        self.call(b"CONFIG", b"SET", b"slowlog-log-slower-than", b"0")
        for number in range(5):
            self.call(b"QLEN", b"q%d" % number)
        self.call(b"CONFIG", b"SET", b"slowlog-log-slower-than", b"99999999")
        node = self.root.runtime.node.membership.myself.id.decode()
        entries = self.got("slowlog?limit=100")["entries"]
        words = [entry["words"] for entry in entries if entry["words"][0] == "QLEN"]
        self.assertEqual([["QLEN", f"q{number}"] for number in (4, 3, 2, 1, 0)], words)
        expected = {"id", "at_s", "duration_us", "words", "addr", "client", "node"}
        self.assertEqual(({*expected}, node), (set(entries[0]), entries[0]["node"]))
        ids = [entry["id"] for entry in entries]
        self.assertEqual(sorted(ids, reverse=True), ids)
        self.assertEqual(entries[:2], self.got("slowlog?limit=2")["entries"])

    def test_secrets(self) -> None:
        """Of passwords people see whether they are set."""
        self.assertEqual("", self.got("config")["settings"]["requirepass"])
        self.call(b"CONFIG", b"SET", b"requirepass", b"hunter2")
        answer = self.slow("GET", f"{_V1}/config", Authorization="Bearer hunter2")
        shown = answer.json["settings"]
        self.assertEqual("(set)", shown["requirepass"])
        self.assertNotIn(b"hunter2", answer.body)
        self.assertEqual("1073741824", shown["maxmemory"])
