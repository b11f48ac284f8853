"""What the verbs that move jobs say, in words and in columns, whole."""

from __future__ import annotations

import csv
import json
from typing import Any

from disque_tx.worker.base.status import WorkerStatus
from tests.cli.livenode import VerbCase, drawn

_LETTER_COLUMNS = ["queue", "id", "at", "attempts", "letters", "reason", "failed_at_s"]


class FillTests(VerbCase):
    """``disque fill``."""

    def lines(self, *bodies: object) -> bytes:
        """Lines of jobs, or what stands in for them."""
        made = [
            body if isinstance(body, bytes) else json.dumps({"queue": "q", **body}).encode()  # type: ignore[dict-item]
            for body in bodies
        ]
        return b"".join(line + b"\n" for line in made)

    def test_pipe(self) -> None:
        """From a pipe the lines before a bad one are added, and it is said how to go on; with
        --from-line those before it are left out, and empty lines are none."""
        first, bad, last = {"body": "a"}, b"no job", {"body": "b"}
        data = self.lines(first, b"", bad, last)
        status, _, errors = self.disque("fill", stdin=data)
        lines = errors.splitlines()
        self.assertEqual((1, 1), (status, self.length("q")))
        self.assertEqual("1 job added", lines[0])
        self.assertEqual("All before line 2 is added: --from-line 2 continues", lines[1])
        self.assertIn("line 3", lines[2].lower())
        status, _, errors = self.disque("fill", "--from-line", 4, stdin=data)
        self.assertEqual((0, "1 job added\n", 2), (status, errors, self.length("q")))
        status, _, errors = self.disque("fill", "--from-line", 9, stdin=data)
        self.assertEqual((0, "0 jobs added\n"), (status, errors))

    def test_set_aside(self) -> None:
        """With --bad the others are added, and the bad lines are kept as they are, each with a line
        end."""
        path = self.folder() / "bad"
        data = self.lines({"body": "a"}, b"no job", {"body": "b"}) + b"{torn"
        status, _, errors = self.disque("fill", "--bad", str(path), stdin=data)
        *said, added, aside = errors.splitlines()
        self.assertEqual((0, 2), (status, len(said)))
        self.assertTrue(all(line.endswith("; it was set aside") for line in said), said)
        self.assertEqual(("2 jobs added", "2 lines set aside"), (added, aside))
        self.assertEqual(b"no job\n{torn\n", path.read_bytes())

    def test_twice(self) -> None:
        """A job that stands in the file twice is added once."""
        one: dict[str, Any] = {"id": "D-1", "body": "a"}
        status, _, errors = self.disque("fill", stdin=self.lines(one, one, {"body": "b"}))
        said = "2 jobs added\n1 line of jobs that other lines had added\n"
        self.assertEqual((0, said, 2), (status, errors, self.length("q")))

    def test_file(self) -> None:
        """A file is looked through first: if a line is bad nothing is added."""
        path = self.folder() / "jobs"
        path.write_bytes(self.lines({"body": "a"}, b"no job"))
        status, _, errors = self.disque("fill", str(path))
        self.assertEqual((1, 0), (status, self.length("q")))
        self.assertIn("; nothing was added", errors)
        path.write_bytes(self.lines({"body": "a"}, {"body": "b"}))
        words = ("fill", str(path), "--queue", "other", "--replicate", 1)
        status, _, errors = self.disque(*words, terminal=True)
        last = drawn(errors)[-1].split()
        self.assertEqual((0, 2, "fill", "2/2"), (status, self.length("other"), last[0], last[2]))


class MoveTests(VerbCase):
    """``disque move``."""

    def test_said(self) -> None:
        """It is said how many jobs were moved, no more than wanted; into itself a queue is not
        moved."""
        self.add("a", *"12345")
        words = ("move", "a", "b", "--timeout", 0.05)
        self.assertEqual((0, "", "2 jobs moved\n"), self.disque(*words, "--count", 2))
        self.assertEqual((3, 2), (self.length("a"), self.length("b")))
        self.assertEqual((0, "", "3 jobs moved\n"), self.disque(*words, "--rate", 1_000))
        bodies = [body for _, _, body in self.call("QPEEK", "b", 9)]
        self.assertEqual([b"1", b"2", b"3", b"4", b"5"], bodies)
        self.assertEqual((0, "", "0 jobs moved\n"), self.disque(*words))
        status, _, errors = self.disque("move", "b", "b")
        self.assertEqual((2, 5), (status, self.length("b")))
        self.assertIn("QUEUE and QUEUE2 are the same queue of the same cluster.", errors)


class LetterTests(VerbCase):
    """``disque dead``."""

    def setUp(self) -> None:
        super().setUp()
        self.call("QPOLICY", "SET", "*", "max-deliveries", 1)
        self.call("ADDJOB", "mail", "for\x1b mail", 0, "RETRY", 60)
        ((_, self.job, _),) = self.call("GETJOB", "FROM", "mail")
        self.call("NACK", "REASON", "no server", self.job)

    def test_forms(self) -> None:
        """People, programs and spreadsheets get the same columns; on a line for people there are no
        control characters."""
        _, output, _ = self.disque("dead", "list", "--csv")
        header, row = csv.reader(output.splitlines(keepends=True))
        self.assertEqual(_LETTER_COLUMNS, header)
        name = self.job.decode()
        self.assertEqual(["mail", name, row[2], "1", "1", "no server"], row[:6])
        self.assertTrue(row[2].endswith("+00:00"), row[2])
        self.assertGreater(float(row[6]), 1e9)
        _, output, _ = self.disque("dead", "list", "--json")
        document = json.loads(output)
        self.assertEqual(_LETTER_COLUMNS, list(document))
        self.assertEqual([name, 1, 1], [document[key] for key in ("id", "attempts", "letters")])
        _, output, _ = self.disque("dead", "list")
        self.assertEqual(["mail", name, row[2], "1", "1", "no server"], output[:-1].split("\t"))
        _, output, _ = self.disque("dead", "list", terminal=True)
        head, line = drawn(output)
        self.assertEqual(_LETTER_COLUMNS[:6], head.split())
        self.assertEqual(["mail", name, row[2], "1", "1", "no", "server"], line.split())
        _, output, _ = self.disque("dead", "list", "other", terminal=True)
        self.assertEqual("no dead letters\n", output)

    def test_shown(self) -> None:
        """All that is known about a letter is shown, a line each, without control characters; it
        is found by the ID of its job and by its own."""
        name = self.job.decode()
        _, output, _ = self.disque("dead", "show", name)
        fields = dict(line.split(": ", 1) for line in output.splitlines() if not line[0].isspace())
        self.assertEqual(
            ("mail", name, "no server"), tuple(fields[one] for one in ("queue", "id", "reason"))
        )
        self.assertNotIn("\x1b", output)
        _, output, _ = self.disque("dead", "show", name, "--json", "--queue", "mail")
        document = json.loads(output)
        (letter,) = document["letters"]
        self.assertEqual(document, json.loads(self.disque("dead", "show", letter, "--json")[1]))
        status, _, errors = self.disque("dead", "show", name, "--queue", "other")
        self.assertEqual(1, status)
        self.assertIn(f"There is no dead letter of {name!r}.", errors)

    def test_kept_options(self) -> None:
        """A job that is put back keeps its RETRY, and has as many copies as wanted."""
        words = ("dead", "requeue", "--id", self.job.decode(), "--replicate", 1)
        self.assertEqual((0, "1 requeued\n", ""), self.disque(*words))
        ((_, job_id, body),) = self.call("QPEEK", "mail", 9)
        shown = self.call("SHOW", job_id)
        self.assertEqual((60, b"for\x1b mail"), (shown[shown.index(b"retry") + 1], body))
        self.assertEqual(0, self.length("dead:mail"))


class WorkerTests(VerbCase):
    """``disque workers``."""

    def test_forms(self) -> None:
        """Whatever the form, a worker is a row with its slots, jobs, queues and places."""
        connection = self.connect()
        name = WorkerStatus("w1", 4, 2, ("mail", "b", None)).encoded()
        connection.call("CLIENT", "SETNAME", name)
        _, output, _ = self.disque("workers", "--csv")
        header, row = csv.reader(output.splitlines())
        columns = "worker slots held queues more_queues hosts nodes age_s"
        self.assertEqual(columns.split(), header)
        expected = ["w1", "4", "2", "mail b", "True", "127.0.0.1", self.node.address]
        self.assertEqual(expected, row[:7])
        _, output, _ = self.disque("workers", "--json")
        document = json.loads(output)
        self.assertEqual(columns.split(), list(document))
        self.assertEqual((["mail", "b"], True), (document["queues"], document["more_queues"]))
        _, output, _ = self.disque("workers")
        head, line = output.splitlines()
        self.assertEqual("worker\tslots\theld\tqueues\tfrom\tnodes\tage s", head)
        cells = ["w1", "4", "2", "mail b …", "127.0.0.1", self.node.address]
        self.assertEqual(cells, line.split("\t")[:6])


class TailTests(VerbCase):
    """``disque tail``."""

    def test_count(self) -> None:
        """The newest ten are shown, or as many as are wanted, the oldest of them first."""
        self.add("q", *map(str, range(12)))
        for words, first in (((), 2), (("-n", 1), 11), (("-n", 0), 12), (("-n", 50), 0)):
            _, output, errors = self.disque("tail", "q", *words)
            found = [line.split()[1].strip('"') for line in output.splitlines()]
            self.assertEqual(([str(number) for number in range(first, 12)], ""), (found, errors))

    def test_terminal(self) -> None:
        """On a terminal letters of any language are shown as such, and elsewhere as bytes."""
        self.add("q", "é")
        self.assertIn('"é"', self.disque("tail", "q", terminal=True)[1])
        self.assertIn('"\\xc3\\xa9"', self.disque("tail", "q")[1])
