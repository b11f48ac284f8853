"""``disque dead``."""

from __future__ import annotations

import json

from tests.cli.livenode import VerbCase


def fields(output: str) -> list[tuple[str, str]]:
    """The names and values of lines that are not those of a longer value."""
    lines = [line for line in output.splitlines() if not line.startswith("    ")]
    return [(name, value) for name, _, value in (line.partition(": ") for line in lines)]


class DeadTests(VerbCase):
    """One node with dead letters of two queues."""

    def setUp(self) -> None:
        super().setUp()
        self.connection = self.connect()
        self.connection.call("QPOLICY", "SET", "*", "max-deliveries", 1)
        for queue in ("mail", "other"):
            self.connection.call("ADDJOB", queue, f"for {queue}", 0, "RETRY", 60)
            ((_, job_id, _),) = self.connection.call("GETJOB", "FROM", queue)
            self.connection.call("NACK", job_id)

    def queues(self, *words: str) -> list[str]:
        """The queues of the letters that are listed."""
        _, output, _ = self.disque("dead", "list", "--json", *words)
        return sorted(json.loads(line)["queue"] for line in output.splitlines())

    def test_of_one_queue(self) -> None:
        """Letters are found by the queue of their jobs, and by their own."""
        self.assertEqual(["mail", "other"], self.queues())
        self.assertEqual(["mail"], self.queues("mail"))
        self.assertEqual(["mail"], self.queues("dead:mail"))
        self.assertEqual([], self.queues("none"))

    def test_named_by_policies(self) -> None:
        """Letters in a queue that a policy names are found as well, without those of others."""
        for pattern, name in (("third", "graveyard"), ("fourth", "graveyard"), ("x*", "x/{queue}")):
            self.connection.call("QPOLICY", "SET", pattern, "dead-queue", name)
        for queue in ("third", "fourth", "xs"):
            self.connection.call("ADDJOB", queue, "x", 0, "RETRY", 60)
            ((_, job_id, _),) = self.connection.call("GETJOB", "FROM", queue)
            self.connection.call("NACK", job_id)
        self.assertEqual(["fourth", "mail", "other", "third", "xs"], self.queues())
        self.assertEqual(["third"], self.queues("third"))
        self.assertEqual(["xs"], self.queues("xs"))
        self.disque("dead", "requeue", "third", "--all", "--yes")
        self.assertEqual(["fourth"], self.queues("fourth"))
        self.assertEqual(1, self.connection.call("QLEN", "third"))

    def test_requeue(self) -> None:
        """The jobs are back in their queues, and the letters are gone."""
        self.assertEqual(
            (0, "1 requeued\n", ""), self.disque("dead", "requeue", "mail", "--all", "--yes")
        )
        ((_, _, body),) = self.connection.call("GETJOB", "FROM", "mail")
        self.assertEqual(b"for mail", body)
        self.assertEqual(["other"], self.queues())

    def test_actions(self) -> None:
        """Whoever looks for lost jobs sees that letters were put back or dropped from a command
        line, how many, and of which queue; a program that fails on the way leaves that, too."""
        self.connection.call("ADDJOB", "dead:mail", "none", 0)
        self.disque("dead", "requeue", "mail", "--all", "--yes")
        self.disque("dead", "drop", "--all", "--yes")
        rows = self.connection.call("ACTIONS", 2)
        found = [(row[1], row[3], row[5]) for row in rows]
        shown = [(b"drop", b"DROP * ALL", 2), (b"requeue", b"REQUEUE mail ALL", 1)]
        self.assertEqual(shown, found)

    def test_shown(self) -> None:
        """All that is known about a letter is one document, with the IDs of its letters; what is no
        letter is shown with the reason."""
        _, output, _ = self.disque("dead", "list", "mail", "--json")
        name = json.loads(output)["id"]
        status, output, errors = self.disque("dead", "show", name, "--json")
        found = json.loads(output)
        self.assertEqual((0, "", "mail", name), (status, errors, found["queue"], found["id"]))
        ((_, letter, _),) = self.connection.call("QPEEK", "dead:mail", 9)
        self.assertEqual([letter.decode()], found["letters"])
        status, output, _ = self.disque("dead", "show", letter.decode())
        self.assertEqual((0, found.keys()), (status, dict(fields(output)).keys()))
        wrong = self.connection.call("ADDJOB", "dead:mail", "x", 0)
        status, output, errors = self.disque("dead", "show", wrong)
        self.assertEqual((1, ""), (status, output))
        self.assertIn("not a dead letter", errors)

    def test_unreadable(self) -> None:
        """A letter that is none is listed as such, stays, and is not in the way of the others."""
        job_id = self.connection.call("ADDJOB", "dead:mail", "x", 0)
        _, output, _ = self.disque("dead", "list", "mail", "--json")
        rows = {json.loads(line)["id"]: json.loads(line) for line in output.splitlines()}
        self.assertEqual(2, len(rows))
        unreadable = rows[job_id]
        self.assertEqual(
            ("dead:mail", "", 0), tuple(unreadable[n] for n in ("queue", "at", "attempts"))
        )
        self.assertEqual((1, None), (unreadable["letters"], unreadable["failed_at_s"]))
        status, output, errors = self.disque("dead", "requeue", "mail", "--all", "--yes")
        self.assertEqual((1, "1 requeued\n"), (status, output))
        self.assertIn(f"{job_id} stays: ", errors)

    def test_drop(self) -> None:
        """Letters are dropped by name, or all of them after a question."""
        status, _, errors = self.disque("dead", "drop", "other")
        self.assertEqual(2, status)
        self.assertIn("Select letters with --id, once or more, or with --all.", errors)
        status, output, errors = self.disque("dead", "drop", "other", "--all", stdin=b"n\n")
        self.assertEqual((1, ""), (status, output))
        self.assertIn("drop 1 dead letter?", errors)
        _, output, _ = self.disque("dead", "list", "mail", "--json")
        name = json.loads(output)["id"]
        self.assertEqual((0, "1 dropped\n", ""), self.disque("dead", "drop", "--id", name))
        self.assertEqual(["other"], self.queues())
        self.assertIn(f"There is no dead letter of {name!r}.", self.disque("dead", "show", name)[2])
