"""``disque workers``."""

from __future__ import annotations

import json

from disque_tx.cli.verbs.workers.workers import connections
from disque_tx.worker.base.status import WorkerStatus
from tests.cli.livenode import VerbCase


class WorkersTests(VerbCase):
    """One node, and its connections."""

    def test_all_connections(self) -> None:
        """Every worker is listed once, however many connections it has, with its newest status,
        and also if its connection is the last in the node's list."""
        for held, name in ((1, "a"), (2, "b"), (3, "c")):
            worker = WorkerStatus(name, 4, held, ("mail", None))
            self.connect().call("CLIENT", "SETNAME", worker.encoded())
        self.connect().call("CLIENT", "SETNAME", WorkerStatus("a", 4, 1, ("mail",)).encoded())
        self.connect().call("CLIENT", "SETNAME", "someone")
        status, output, errors = self.disque("workers", "--json")
        rows = [json.loads(line) for line in output.splitlines()]
        self.assertEqual((0, ""), (status, errors))
        self.assertEqual(
            [("a", 1), ("b", 2), ("c", 3)], [(row["worker"], row["held"]) for row in rows]
        )
        self.assertEqual([["127.0.0.1"]] * 3, [row["hosts"] for row in rows])
        self.assertEqual([[self.node.address]] * 3, [row["nodes"] for row in rows])

    def test_last_of_the_list(self) -> None:
        """No line of a node's list is left out, wherever the worker stands in it."""
        name = WorkerStatus("w", 4, 1, ("mail",)).encoded()
        lines = [b"id=%d addr=10.0.0.1:5 age=7 idle=3 name=%b" % (n, name.encode()) for n in (1, 2)]
        for listing in (lines[:1], lines):
            found = list(connections("n:1", b"\n".join(listing)))
            self.assertEqual(len(listing), len(found))
            self.assertEqual(
                (3, 7, ["10.0.0.1"]), (found[-1].idle_s, found[-1].age_s, found[-1].hosts)
            )

    def test_without_times(self) -> None:
        """A node that does not say how old a connection is, or says nonsense, hides no worker."""
        name = WorkerStatus("w", 4, 1, ("mail",)).encoded()
        for times in ("", " age= idle=", " age=-1 idle=\u00b2", " age=soon idle=1.5"):
            (found,) = connections("n:1", f"id=1 addr=[::1]:5{times} name={name}".encode())
            self.assertEqual((0, 0, ["[::1]"]), (found.idle_s, found.age_s, found.hosts))
