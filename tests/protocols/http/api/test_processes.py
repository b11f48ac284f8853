"""What all processes of a daemon say, over HTTP: each row with the process that it is of."""

from __future__ import annotations

from typing import Any

from tests.protocols.http.processesbench import ProcessesCase

_V1 = "/api/v1"


class RowTests(ProcessesCase):
    """Lists of which each process keeps its own part."""

    def rows(self, path: str, name: str) -> Any:
        """The rows of a list, of both processes."""
        answer = self.slow("GET", f"{_V1}/{path}").json
        self.assertEqual((2, []), (answer["nodes"], answer["nodes_missing"]))
        return answer[name]

    def test_clients(self) -> None:
        """Clients come in pages that go from one process to the next, each with its process."""
        for path in (self.settings.unixsocket, self.path("d.sock")) * 2:
            self.ask(self.dial(path), "PING")
        every = self.rows("clients", "clients")
        self.assertGreaterEqual(len(every), 4)
        self.assertEqual({1, 2}, {row["process"] for row in every if row["process"]})
        processes = [row["process"] for row in every]
        self.assertEqual(sorted(processes), processes)
        keys = [(row["process"], row["id"]) for row in every if row["name"] != "http"]
        paged = []
        for offset in range(len(every)):
            page = self.rows(f"clients?limit=1&offset={offset}", "clients")
            paged += [(row["process"], row["id"]) for row in page if row["name"] != "http"]
        self.assertEqual(keys, paged)

    def test_slow_log(self) -> None:
        """The newest entries of all processes come first, as many as are wanted."""
        for root, queue in ((self.first, b"a"), (self.second, b"b")):
            root.server.slowlog.slower_than_us = 0
            self.at(root, b"QLEN", queue)
            root.server.slowlog.slower_than_us = 10**9
        rows = self.rows("slowlog", "entries")
        found = {(row["process"], " ".join(row["words"])) for row in rows}
        self.assertTrue({(1, "QLEN a"), (2, "QLEN b")} <= found, found)
        self.assertEqual(1, len(self.rows("slowlog?limit=1", "entries")))

    def test_actions(self) -> None:
        """What people did is listed for all processes."""
        self.at(self.first, b"PAUSE", b"a", b"in")
        self.at(self.second, b"PAUSE", b"b", b"in")
        found = {(row["process"], row["what"]) for row in self.rows("actions", "actions")}
        self.assertTrue({(1, "PAUSE a in"), (2, "PAUSE b in")} <= found, found)
