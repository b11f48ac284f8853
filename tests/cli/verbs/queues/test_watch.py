"""``disque watch``."""

from __future__ import annotations

import csv
import io
import json
import time
from contextlib import redirect_stderr, redirect_stdout

from twisted.internet.task import Clock

from disque_tx.cli.options import parse
from disque_tx.cli.verbs.base.members import Members, NobodyAnswers
from disque_tx.cli.verbs.queues import watch as module
from disque_tx.cli.verbs.queues.watch import QueueWatch
from tests.acceptance.daemon import free_port
from tests.cli.livenode import VerbCase, drawn


class WatchTests(VerbCase):
    """The figures of queues of one node."""

    def test_lines(self) -> None:
        """Programs get one line with tabs per queue and interval."""
        self.add("q", "a", "b")
        self.call("PAUSE", "q", "out")
        status, output, _ = self.disque("watch", "q", "none", "--count", 2, "-i", 0.01)
        rows = [line.split("\t")[1:] for line in output.splitlines()]
        shown = ["queue", "length", "age s", "in/s", "out/s", "blocked", "pause"]
        self.assertEqual([*shown, "delayed", "backoff", "in flight", "dead", "loaded"], rows[0])
        self.assertEqual((0, 5), (status, len(rows)))
        self.assertEqual(["q", "2"], rows[1][:2])
        self.assertEqual(["0.0", "0.0", "0", "out", *["0"] * 5], rows[3][3:])
        self.assertEqual(["none", "0"], rows[4][:2])

    def test_interval_before(self) -> None:
        """The interval may also be given before the verb, as for commands of the server."""
        slept: list[float] = []
        self.patch(time, "sleep", slept.append)
        for before, after in ((("-i", 7.5), ()), ((), ("-i", 7.5)), (("-i", 3), ("-i", 7.5))):
            self.disque(*before, "watch", "q", "--count", 2, *after)
        self.assertEqual([7.5] * 3, slept)

    def test_progress(self) -> None:
        """Who watches a queue sees how far its jobs are; those of other queues do not matter."""
        for queue, fraction in (("q", "0.4"), ("other", "0.5")):
            self.add(queue, "a")
            ((_, job_id, _),) = self.call("GETJOB", "FROM", queue)
            self.call("WORKING", job_id, "PROGRESS", fraction, "NOTE", b"page\x1b 40")
        status, output, _ = self.disque("--json", "watch", "q", "--once")
        (found,) = [row for row in map(json.loads, output.splitlines()) if "progress" in row]
        (report,) = found["progress"]
        self.assertGreaterEqual(report.pop("age_s"), 0)
        expected = {"queue": "q", "fraction": 0.4, "note": "page? 40"}
        self.assertEqual((0, expected), (status, {k: v for k, v in report.items() if k != "id"}))
        self.assertTrue(report["id"].startswith("D-"))

    def test_separated(self) -> None:
        """A spreadsheet gets one header, and a row per queue and interval with exact figures."""
        self.add("q", "a", "b")
        status, output, _ = self.disque("--csv", "watch", "q", "none", "--count", 2, "-i", 0.01)
        header, *rows = csv.reader(output.splitlines())
        figures = "queue length age_s in_per_s out_per_s blocked jobs_in jobs_out pause delayed"
        self.assertEqual(["time", *figures.split(), *_LAST.split()], header)
        self.assertEqual((0, ["q", "none", "q", "none"]), (status, [row[1] for row in rows]))
        self.assertEqual([rows[0][0]] * 2 + [rows[2][0]] * 2, [row[0] for row in rows])
        counted = ["0.0", "0.0", "0", "2", "0", "none", *"00000"]
        self.assertEqual(["q", "2", rows[2][3], *counted], rows[2][1:])

    def test_documents(self) -> None:
        """Programs get the totals of all queues behind the queues that are watched."""
        self.add("q", "a", "b")
        self.add("other", "a")
        _, output, _ = self.disque("--json", "watch", "q", "--count", 2, "-i", 0.01)
        documents = [json.loads(line) for line in output.splitlines()]
        self.assertEqual(["q", None, "q", None], [one.get("queue") for one in documents])
        totals = documents[-1]["totals"]
        self.assertEqual((3, 0), (totals["queued_jobs"], totals["jobs_in_flight"]))

    def test_terminal(self) -> None:
        """On a terminal, people see below the figures how many jobs wait, how far those are that
        are in work, and the first things that are wrong."""
        for queue in ("mail", "b", "c", "d"):
            self.add(queue, "x")
            self.call("PAUSE", queue, "all")
        self.add("w", "x")
        ((_, job_id, _),) = self.call("GETJOB", "FROM", "w")
        self.call("WORKING", job_id, "PROGRESS", "0.25", "NOTE", "half")
        words = ("watch", "mail", "w", "--count", 2, "-i", 0.01)
        status, output, _ = self.disque(*words, terminal=True)
        lines = drawn(output)
        frame = lines[:9]
        self.assertEqual((0, ["mail", "w"]), (status, [line.split()[0] for line in frame[1:3]]))
        said = r"all queues: 4 waiting, the oldest for \d+ s; 1 in flight\Z"
        self.assertRegex(frame[3], said)
        self.assertTrue(frame[4].startswith(f"w {job_id.decode()}: 25%: half ("), frame[4])
        self.assertEqual({"note:"}, {line.split()[0] for line in frame[5:8]})
        self.assertEqual("and 1 more: disque doctor", frame[8])
        self.assertEqual(2, lines[9:].count("and 1 more: disque doctor"), "redrawn, and at the end")

    def test_all_findings(self) -> None:
        """When all that is wrong is shown, nothing is said of more."""
        for queue in "abc":
            self.add(queue, "x")
            self.call("PAUSE", queue, "all")
        _, output, _ = self.disque("watch", "a", "--once", terminal=True)
        lines = drawn(output)
        notes = [line for line in lines[: len(lines) // 2] if line.startswith("note: ")]
        self.assertEqual((3, []), (len(notes), [line for line in lines if "more" in line]))


_LAST = "backoff in_flight dead loaded"


class QueueWatchTests(VerbCase):
    """Samples of nodes some of which do not answer, and what goes on between samples."""

    def setUp(self) -> None:
        super().setUp()
        self.clock = Clock()

    def watch(self, *addresses: str, everywhere: bool = False) -> QueueWatch:
        """A watch of queue ``q`` at these nodes, of which HELLO is asked in turn."""
        members = Members(parse([], {}), addresses)
        self.addCleanup(members.close)
        return QueueWatch(members, ("q",), everywhere, self.clock.seconds)

    def test_rates(self) -> None:
        """Rates are those of the time since the sample before, however long it was."""
        watch = self.watch(self.node.address)
        self.add("q", "a")
        watch.sample()
        for seconds, jobs in ((2, 1), (4, 8)):
            self.add("q", *"x" * jobs)
            self.clock.advance(seconds)
            ((_, rates),) = watch.sample()
            self.assertEqual((jobs / seconds, 0.0), (rates.in_per_s, rates.out_per_s))

    def test_examined(self) -> None:
        """What is wrong is looked for at the first sample, and again ten seconds later; of one node
        alone it is not."""
        self.add("q", "x")
        alone, watch = self.watch(self.node.address), self.watch(self.node.address, everywhere=True)
        self.call("PAUSE", "q", "all")
        for seconds, pause, found in ((0, "none", 1), (9.99, "none", 1), (0.01, "none", 0)):
            self.clock.advance(seconds)
            watch.sample()
            self.assertEqual(found, len(watch.findings), seconds)
            self.call("PAUSE", "q", pause)
        self.call("PAUSE", "q", "all")
        alone.sample()
        self.assertEqual([], alone.findings)

    def test_silent(self) -> None:
        """A first sample that no node answers is an error; later, the watch goes on, says why there
        are no figures, and shows them again when a node answers."""
        dead = f"127.0.0.1:{free_port()}"
        watch = self.watch(dead)
        samples = module._samples(watch, None, 0.0)
        self.assertRaises(NobodyAnswers, next, samples)
        watch = self.watch(self.node.address, dead)
        watch.sample()
        self.assertEqual("", watch.trouble, "one node is asked unless all are wanted")
        watch = self.watch(self.node.address)
        members = watch._members
        samples = module._samples(watch, 3, 0.0)
        self.assertEqual(["q"], [figures.name for figures, _ in next(samples)])
        self.assertEqual("", watch.trouble)
        here, members.nodes = members.nodes, (dead,)
        self.assertEqual([], next(samples))
        self.assertIn(f"No node answers ({dead}: ", watch.trouble)
        members.nodes = here
        self.assertEqual(["q"], [figures.name for figures, _ in next(samples)])
        self.assertEqual(("", []), (watch.trouble, list(samples)))

    def test_trouble(self) -> None:
        """Programs that read the figures find on the error output why there are none, once for each
        sample, and nothing else than figures on the other one."""
        watch = self.watch(self.node.address)
        for show in (module._lines, module._documents):
            watch.trouble = "No node answers"
            out, err = io.StringIO(), io.StringIO()
            with redirect_stdout(out), redirect_stderr(err):
                show(watch, iter([[], []]))
            self.assertEqual("No node answers\n" * 2, err.getvalue())
            self.assertNotIn("answers", out.getvalue())
