"""The verbs of ``disque`` with real daemons."""

from __future__ import annotations

import contextlib
import csv
import json
import os
import pty
import random
import re
import signal
import subprocess
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Final

from tests.acceptance.cluster.fleet import FleetTestCase
from tests.acceptance.daemon import (
    START_S,
    Daemon,
    DaemonTestCase,
    environment,
    free_port,
    wait_for,
)
from tests.acceptance.disque import PROGRAM, disque, started
from tests.services.net.certificates import Authority

_KILLS: Final = 20
_HOW_TO: Final = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "use-the-command-line.md"
_EXAMPLE: Final = re.compile(r"```sh\n(.*?)```", re.DOTALL)


class VerbTestCase(FleetTestCase):
    """A node, and jobs in it."""

    size = 1

    def setUp(self) -> None:
        """Get the node."""
        super().setUp()
        (self.node,) = self.nodes
        self.connection = self.node.client()

    def call(self, *words: bytes | str | int) -> Any:
        """A request of the test's own."""
        return self.connection.call(*words)

    def run_here(self, *words: str | float) -> tuple[int, str, str]:
        """The program with the daemon."""
        return disque("-p", self.node.port, *words)

    def add(self, queue: str, *bodies: bytes | str, **options: int) -> None:
        """ADDJOB for each; options by their names."""
        words = [word for name, value in options.items() for word in (name.upper(), value)]
        for body in bodies:
            self.call("ADDJOB", queue, body, 0, *words)

    def length(self, queue: str) -> int:
        """QLEN."""
        return int(self.call("QLEN", queue))


class LookingTests(VerbTestCase):
    """Verbs that change nothing."""

    def test_tail(self) -> None:
        """The newest jobs of a queue, the oldest of them first, and no byte of a body obeyed."""
        self.add("q", "old", "b", b"\x1b[2J\xff\n")
        status, output, _ = self.run_here("tail", "q", "-n", 2)
        self.assertEqual((0, ['"b"', '"\\x1b[2J\\xff\\n"']), (status, output.split()[1::2]))
        _, output, _ = self.run_here("--json", "tail", "q", "-n", "1")
        self.assertEqual({"base64": "G1sySv8K"}, json.loads(output)["body"])
        self.assertEqual(3, self.length("q"))

    def test_tail_follows(self) -> None:
        """Each new job is shown once, as long as one looks; interrupted, the status is 130."""
        words = ("-p", self.node.port, "tail", "q", "-f", "-i", "0.02", "--json")
        tail = started(*words, stdout=subprocess.PIPE)
        assert tail.stdout is not None
        for body in ("a", "b"):
            self.add("q", body)
            self.assertEqual(body, json.loads(tail.stdout.readline())["body"])
        tail.send_signal(signal.SIGINT)
        self.assertEqual((b"", None), tail.communicate(timeout=START_S))
        self.assertEqual(130, tail.returncode)

    def test_tail_on_a_terminal(self) -> None:
        """There letters are shown as they are, and still no byte is obeyed."""
        self.add("q", "grüße", b"\x1b[2J\xff")
        output = on_terminal("-p", str(self.node.port), "tail", "q")
        self.assertIn('"grüße"', output)
        self.assertIn('"\\x1b[2J\\xff"', output)

    def test_watch(self) -> None:
        """Figures for programs: a line per queue and look, with tabs."""
        self.add("q", "a", "b")
        self.call("PAUSE", "q", "out")
        status, output, _ = self.run_here("watch", "q", "none", "--count", 2, "-i", 0.05)
        rows = [line.split("\t")[1:] for line in output.splitlines()]
        self.assertEqual(["queue", "length", "age s", "in/s", "out/s", "blocked", "pause"], rows[0])
        self.assertEqual((0, 5), (status, len(rows)))
        self.assertEqual(["q", "2"], rows[1][:2])
        self.assertEqual(["0.0", "0.0", "0", "out"], rows[3][3:])
        self.assertEqual(["none", "0"], rows[4][:2])

    def test_watch_on_a_terminal(self) -> None:
        """There it is a table."""
        self.add("q", "a")
        output = on_terminal("-p", str(self.node.port), "watch", "q", "--once")
        self.assertRegex(output, r"\bq +1 ")

    def test_bigqueues(self) -> None:
        """The longest first, as many as asked for; all are counted."""
        for number in range(1, 6):
            self.add(f"q{number}", *"x" * number)
        status, output, error = self.run_here("--bigqueues", "-n", 2, "-i", 0.05)
        rows = [line.split("\t")[1:3] for line in output.splitlines()[1:]]
        self.assertEqual((0, [["q5", "5"], ["q4", "4"]]), (status, rows))
        self.assertIn("5 queues", error)


class MachineTests(VerbTestCase):
    """What programs read is exact."""

    def test_json(self) -> None:
        """Numbers are numbers, IDs and names are whole, nothing is rounded."""
        self.add("q" * 300, *["x" * 2000] * 3)
        name = "q" * 300
        for words in (("watch", name, "--once"), ("--bigqueues", "-i", "0")):
            status, output, _ = self.run_here("--json", *words)
            row = json.loads(output.splitlines()[0])
            self.assertEqual((0, name, 3), (status, row["queue"], row["length"]))
        _, output, _ = self.run_here("--json", "cluster", "info", f"127.0.0.1:{self.node.port}")
        ((row),) = json.loads(output)
        used = int(self.node.info()["used_memory"])
        self.assertEqual((self.node.id, used), (row["id"], row["memory_bytes"]))
        self.assertEqual((3, 1, 0, 0), tuple(row[n] for n in ("jobs", "queues", "links", "others")))

    def test_csv(self) -> None:
        """The same as CSV, with a header; names of any bytes and with commas too."""
        self.call("ADDJOB", b"a,\xff", "x", 0)
        for words in (("watch", "a", "--once"), ("dead", "list")):
            status, output, _ = self.run_here("--csv", *words)
            self.assertEqual(0, status)
            self.assertIn("queue", next(csv.reader(output.splitlines())))
        result = subprocess.run(
            [*PROGRAM, "-p", str(self.node.port), "--csv", "--bigqueues", "-i", "0"],
            env=environment(),
            capture_output=True,
            check=True,
        )
        self.assertIn(b'"a,\xff",1,', result.stdout)

    def test_not_ignored(self) -> None:
        """A verb without such an output says so, instead of printing for people."""
        status, output, error = self.run_here("--json", "move", "a", "b")
        self.assertEqual((2, ""), (status, output))
        self.assertIn("no output as --json", error)


class HealthTests(DaemonTestCase):
    """``disque health``, as probes run it."""

    def test_life(self) -> None:
        """0 while the node serves; 1, with the reason, when it is leaving, full, or gone; and no
        job is added by asking."""
        node = self.running("maxmemory 1mb")
        client = node.client()
        self.assertEqual(
            (0, f"127.0.0.1:{node.port}: serves\n", ""), disque("-p", node.port, "health")
        )
        client.call("CLUSTER", "LEAVING", "yes")
        self.unhealthy("leaving", "-p", node.port)
        client.call("CLUSTER", "LEAVING", "no")
        self.assertEqual("0", node.info()["registered_jobs"])
        while "NOREPL" not in client.error("ADDJOB", "q", "x" * 100_000, 0):
            pass
        self.unhealthy("memory", "-p", node.port)
        node.kill()
        self.unhealthy("refused", "-p", node.port)

    def test_password(self) -> None:
        """One that is missing or wrong is a reason of its own; the right one is not."""
        node = self.running("requirepass secret")
        self.unhealthy("NOAUTH", "-p", node.port)
        self.unhealthy("refuses the password", "-p", node.port, "-a", "other")
        self.assertEqual(0, disque("-p", node.port, "-a", "secret", "health")[0])

    def test_hanging(self) -> None:
        """A node that is stopped answers nothing: the probe ends all the same."""
        node = self.running()
        os.kill(node.pid, signal.SIGSTOP)
        self.addCleanup(os.kill, node.pid, signal.SIGCONT)
        status, output, _ = disque("health", f"127.0.0.1:{node.port}", "--timeout", 0.3, "--json")
        self.assertEqual((1, False), (status, json.loads(output)["healthy"]))
        self.assertIn("within 0.3 s", output)

    def unhealthy(self, why: str, *words: str | int) -> None:
        """The status is 1, and this the reason."""
        status, output, error = disque(*words, "health")
        self.assertEqual((1, ""), (status, output))
        self.assertIn(why, error)


class DrainTests(VerbTestCase):
    """``disque drain``."""

    def test_life(self) -> None:
        """All jobs, whatever their bodies, once; and then they are gone."""
        bodies = [b"text", b"\xff\x00\n", b"", "é".encode()]
        self.add("q", *bodies)
        status, output, error = self.run_here("drain", "q", "--timeout", "0.1")
        found = [json.loads(line)["body"] for line in output.splitlines()]
        self.assertEqual((0, ["text", {"base64": "/wAK"}, "", "é"]), (status, found))
        self.assertEqual("4 jobs drained\n", error)
        self.assertEqual(0, int(self.node.info()["registered_jobs"]))

    def test_raw_and_count(self) -> None:
        """Bodies for shell tools; and no more jobs than asked for."""
        self.add("q", "a", "b", "c")
        _, output, _ = self.run_here("drain", "q", "--raw", "--count", "2")
        self.assertEqual(("a\nb\n", 1), (output, self.length("q")))

    def test_keep(self) -> None:
        """A copy of a queue leaves it as long as it was."""
        self.add("q", *map(str, range(250)))
        _, output, _ = self.run_here("drain", "q", "--raw", "--keep", "--timeout", "0.1")
        self.assertEqual(250, len(set(output.split())))
        self.assertEqual(250, self.length("q"))

    def test_appends(self) -> None:
        """What is in the file stays, also behind a line that was torn when a process died."""
        path = self.folder() / "jobs"
        path.write_text("first\n{torn")
        self.add("q", "a")
        self.run_here("drain", "q", "--raw", "--count", "1", "--to", str(path))
        self.assertEqual("first\n{torn\na\n", path.read_text())

    def test_nothing_is_acknowledged_that_was_not_written(self) -> None:
        """With a full disk the jobs are in the queue again at once, and the trouble is told."""
        self.add("q", "a", "b")
        status, _, error = self.run_here("drain", "q", "--to", "/dev/full")
        self.assertEqual((1, 2), (status, self.length("q")))
        self.assertIn("No space left on device", error)

    def test_broken_pipe(self) -> None:
        """Whoever read the output may leave; that is no news, and the jobs stay."""
        self.add("q", *["x" * 1000] * 500)
        drain = started(
            *("-p", self.node.port, "drain", "q"), stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        assert drain.stdout is not None and drain.stderr is not None
        drain.stdout.close()
        with drain.stderr:
            self.assertNotIn(b"Traceback", drain.stderr.read())
        self.assertEqual(1, drain.wait(10))
        self.assertEqual(500, self.length("q"))

    def test_interrupted(self) -> None:
        """Ctrl-C ends it quietly with status 130, also while it waits for jobs."""
        drain = started(
            *("-p", self.node.port, "drain", "q", "--timeout", 60), stderr=subprocess.PIPE
        )
        wait_for(lambda: int(self.node.info()["blocked_clients"]), "it waits")
        drain.send_signal(signal.SIGINT)
        _, error = drain.communicate(timeout=START_S)
        self.assertEqual((130, b"0 jobs drained"), (drain.returncode, error.strip()))

    def test_progress(self) -> None:
        """On a terminal one sees how far it is."""
        self.add("q", "a", "b")
        path = str(self.folder() / "jobs")
        words = ("-p", str(self.node.port), "drain", "q", "--to", path, "--timeout", "0.1")
        self.assertIn("2/2", on_terminal(*words))

    def test_killed(self) -> None:
        """Killed at any moment, again and again: each job is in the file in the end."""
        path = self.folder() / "jobs"
        path.touch()
        words = ("-p", self.node.port, "drain", "q", "--to", str(path))
        wanted = kill_often(self, words, lambda: path.stat().st_size, 1000)
        self.run_here(*words[2:])
        found = set()
        for line in path.read_text().splitlines():
            with contextlib.suppress(ValueError):
                found.add(json.loads(line)["body"])
        self.assertEqual(wanted, found)


class FillTests(VerbTestCase):
    """``disque fill``."""

    def add_options(self, queue: str) -> list[tuple[bytes, int, int, int]]:
        """Body, RETRY, TTL and copies of the jobs of a queue."""
        found = []
        for _, job_id, body in self.call("QPEEK", queue, 100):
            shown = self.call("SHOW", job_id)
            of = dict(zip(shown[::2], shown[1::2], strict=True))
            found.append((body, of[b"retry"], of[b"ttl"], of[b"repl"]))
        return sorted(found)

    def test_there_and_back(self) -> None:
        """What was drained comes back as it was: body, RETRY, copies and what is left of its TTL;
        and what was to be delivered at most once stays so."""
        self.add("q", b"text\n", retry=77, ttl=500)
        self.add("q", b"\xff\x00", retry=0, ttl=600, replicate=1)
        self.add("q", "é", ttl=9999)
        before = self.add_options("q")
        path = str(self.folder() / "jobs")
        self.run_here("drain", "q", "--to", path, "--timeout", "0.1")
        self.assertEqual(0, self.length("q"))
        self.assertEqual((0, "", "3 jobs added\n"), self.run_here("fill", path))
        for was, now in zip(before, self.add_options("q"), strict=True):
            self.assertEqual((was[:2], was[3]), (now[:2], now[3]))
            self.assertTrue(was[2] - 20 <= now[2] <= was[2], (was, now))

    def test_older_lines(self) -> None:
        """Lines of older versions have no RETRY; the ID says whether it was 0."""
        line = {"queue": "q", "id": "D-dcb833cf-8YL1NT17e9+wsA/09NqxscQI-000a", "body": "x"}
        self.assertEqual(0, disque("-p", self.node.port, "fill", stdin=_lines(line))[0])
        ((_, retry_s, ttl_s, copies),) = self.add_options("q")
        self.assertEqual((0, 1), (retry_s, copies))
        self.assertTrue(590 <= ttl_s <= 600, ttl_s)

    def test_elsewhere(self) -> None:
        """Into another queue, from a pipe; a job that was drained twice is added once."""
        line = {"queue": "q", "id": "D-1", "body": "x", "retry": 5, "ttl": 50}
        words = ("-p", self.node.port, "fill", "--queue", "q2")
        _, _, error = disque(*words, stdin=_lines(line, line, line | {"id": "D-2"}))
        self.assertEqual((2, 0), (self.length("q2"), self.length("q")))
        self.assertIn("1 lines were of jobs that other lines had added", error)

    def test_bad_lines(self) -> None:
        """They are named by their number. From a file nothing is added then, from a pipe what is
        before; and they can be set aside, so that nothing is lost."""
        good = _lines({"queue": "q", "body": "x"})
        for bad in (b"{torn\n", b"[]\n", _lines({"queue": "q"}), b'{"queue":"q","body":5}\n'):
            path = self.folder() / "jobs"
            path.write_bytes(good + bad + good)
            status, _, error = self.run_here("fill", str(path))
            self.assertEqual((1, 0), (status, self.length("q")))
            self.assertIn("line 2 is not a job", error)
            self.assertIn("nothing was added", error)
            words = ("-p", self.node.port, "fill")
            status, _, error = disque(*words, stdin=path.read_bytes())
            self.assertEqual((1, 1), (status, self.length("q")))
            self.assertIn("--from-line 2 continues", error)
            aside = path.with_name("aside")
            status, _, error = self.run_here("fill", str(path), "--bad", str(aside))
            self.assertEqual((0, 3), (status, self.length("q")))
            self.assertEqual(bad, aside.read_bytes())
            self.run_here("drain", "q", "--timeout", "0")

    def test_refused(self) -> None:
        """Half-way: it says where to go on, and going on there adds each job once."""
        path = self.folder() / "jobs"
        queues = ["a", "b", "full", "c"]
        path.write_bytes(_lines(*({"queue": each, "body": each} for each in queues)))
        self.call("PAUSE", "full", "in")
        status, _, error = self.run_here("fill", str(path))
        self.assertEqual(1, status)
        self.assertIn("2 jobs added\nAll before line 3 is added: --from-line 3 continues", error)
        self.call("PAUSE", "full", "none")
        self.assertEqual(0, self.run_here("fill", str(path), "--from-line", 3)[0])
        self.assertEqual([1] * 4, [self.length(each) for each in queues])

    def test_killed_drain(self) -> None:
        """A drain that was killed leaves a torn line, and its job in the queue: with the line set
        aside, all comes back."""
        path = self.folder() / "jobs"
        path.write_bytes(b'{"queue": "q", "bo')
        self.add("q", "a")
        self.run_here("drain", "q", "--to", str(path), "--timeout", "0.1")
        status, _, error = self.run_here("fill", str(path), "--bad", str(path) + ".bad")
        self.assertEqual((0, 1), (status, self.length("q")), error)


def _lines(*values: object) -> bytes:
    return b"".join(json.dumps(value).encode() + b"\n" for value in values)


class MoveTests(VerbTestCase):
    """``disque move``."""

    def test_at_most_once(self) -> None:
        """A job with RETRY 0 stays one at the other place, whatever number of copies is asked
        for, and has one copy."""
        self.add("q", "a", retry=0, ttl=600, replicate=1)
        words = ("move", "q", "q2", "--timeout", "0.1", "--replicate", 2)
        self.assertEqual((0, "", "1 jobs moved\n"), self.run_here(*words))
        ((_, job_id, _),) = self.call("QPEEK", "q2", 1)
        shown = self.call("SHOW", job_id)
        shown = dict(zip(shown[::2], shown[1::2], strict=True))
        self.assertEqual((0, 1), (shown[b"retry"], shown[b"repl"]))

    def test_keeps_the_terms(self) -> None:
        """A job at the other place has the same RETRY, and expires when it would have."""
        self.add("q", "a", retry=77, ttl=500)
        status, _, error = self.run_here("move", "q", "q2", "--timeout", "0.1")
        self.assertEqual((0, "1 jobs moved\n"), (status, error))
        ((_, job_id, body),) = self.call("QPEEK", "q2", 1)
        shown = self.call("SHOW", job_id)
        shown = dict(zip(shown[::2], shown[1::2], strict=True))
        self.assertEqual((b"a", 77), (body, shown[b"retry"]))
        self.assertTrue(490 <= shown[b"ttl"] <= 500, shown[b"ttl"])
        self.assertEqual(1, int(self.node.info()["registered_jobs"]))

    def test_to_another_cluster(self) -> None:
        """Its password is in the URL; and the name of the queue may stay."""
        other = self.running("requirepass secret")
        self.add("q", "a", "b")
        url = f"disque://:secret@127.0.0.1:{other.port}"
        status, _, error = self.run_here("move", "q", "q", "--to-address", url, "--timeout", "0.1")
        self.assertEqual((0, "2 jobs moved\n"), (status, error))
        there = other.client()
        there.call("AUTH", "secret")
        self.assertEqual((0, 2), (self.length("q"), there.call("QLEN", "q")))

    def test_to_itself(self) -> None:
        """That would never end; it is refused, however the node is named."""
        for words in ((), ("--to-address", f"localhost:{self.node.port}")):
            status, _, error = self.run_here("move", "q", "q", *words)
            self.assertEqual(2, status)
            self.assertIn("the same queue", error)

    def test_refused(self) -> None:
        """A target that takes no more: the reason, status 1, and every job is in the old queue."""
        self.add("q", "a", "b")
        self.call("PAUSE", "q2", "in")
        status, _, error = self.run_here("move", "q", "q2")
        self.assertEqual((1, 2), (status, self.length("q")))
        self.assertIn("PAUSED", error)

    def test_target_dies(self) -> None:
        """Half-way: what was moved is told, the rest is in the old queue."""
        other = self.running()
        self.add("q", *map(str, range(50)))
        words = ("-p", self.node.port, "move", "q", "q", "--rate", 50)
        move = started(*words, "--to-address", f"127.0.0.1:{other.port}", stderr=subprocess.PIPE)
        wait_for(lambda: int(other.info()["registered_jobs"]) > 3, "it has begun")
        other.kill()
        wait_for(lambda: self.length("q") < 50, "some are moved")
        move.send_signal(signal.SIGINT)
        _, error = move.communicate(timeout=START_S)
        (moved,) = map(int, re.findall(rb"(\d+) jobs moved", error))
        self.assertEqual(130, move.returncode)
        # One may be acknowledged and not yet counted when the signal comes.
        self.assertIn(moved + self.length("q"), (49, 50))

    def test_killed(self) -> None:
        """Killed at any moment, again and again: each job is at the other place in the end."""
        words = ("-p", self.node.port, "move", "q", "q2")
        wanted = kill_often(self, words, lambda: self.length("q2"), 60)
        self.run_here(*words[2:])
        _, output, _ = self.run_here("drain", "q2", "--raw", "--timeout", "0")
        self.assertEqual(wanted, set(output.split()))


def kill_often(
    case: VerbTestCase, words: tuple[str | int, ...], measure: Callable[[], int], jobs: int
) -> set[str]:
    """Add ``jobs`` jobs, start the program, kill it soon after ``measure`` grows; and so on.

    Returns the bodies of all jobs. Fails if it never was in the middle of its work.
    """
    chance = random.Random(4)
    bodies: set[str] = set()
    in_the_middle = 0
    for round_ in range(_KILLS):
        fresh = [f"{round_}-{number}" for number in range(jobs)]
        case.add("q", *fresh, retry=1)
        bodies |= set(fresh)
        process = started(*words)
        wait_for(partial(_grows, measure, measure()), "it has begun")
        time.sleep(chance.random() * 0.01)
        process.kill()
        process.wait()
        in_the_middle += case.length("q") > 0
    case.assertGreater(in_the_middle, 0)
    return bodies


def _grows(measure: Callable[[], int], before: int) -> bool:
    return measure() > before


class ReachingTests(DaemonTestCase):
    """How nodes are reached, and what is said when they are not."""

    def test_tls(self) -> None:
        """Commands, modes and verbs, each encrypted with the certificate checked."""
        port, options = self.encrypted()
        self.assertEqual((0, "PONG\n"), disque(*options, "PING")[:2])
        lines = b"ADDJOB q body 0\r\n" * 3000
        status, output, _ = disque(*options, "--pipe", stdin=lines)
        self.assertEqual(0, status)
        self.assertIn("errors: 0, replies: 3000", output)
        status, output, _ = disque(*options, "drain", "q", "--raw", "--timeout", "0.1")
        self.assertEqual((0, 3000), (status, len(output.splitlines())))
        self.assertEqual(0, disque(*options, "cluster", "check", f"127.0.0.1:{port}")[0])

    def test_tls_refused(self) -> None:
        """Who cannot be trusted is not talked to, and the way out is told."""
        port, options = self.encrypted()
        for words in (("PING",), ("tail", "q")):
            status, _, error = disque("-p", port, "--tls", *words)
            self.assertEqual(1, status)
            self.assertIn("--cacert", error)
            status, _, error = disque(*options[:-1], *words)
            self.assertEqual(1, status)
            self.assertIn("--no-host-check", error)
        status, output, error = disque("-p", port, "--tls", "--insecure", "PING")
        self.assertEqual((0, "PONG\n"), (status, output))
        self.assertIn("not checked", error)

    def test_tls_at_the_wrong_port(self) -> None:
        """Encrypted to a plain port and plain to an encrypted one: which option is wrong."""
        port, _ = self.encrypted()
        plain = self.node.port
        for words in (("PING",), ("tail", "q")):
            status, _, error = disque("-p", plain, "--tls", *words)
            self.assertEqual(1, status)
            self.assertIn("try without --tls", error)
            status, _, error = disque("-p", port, *words)
            self.assertEqual(1, status)
            self.assertIn("try with --tls", error)

    def encrypted(self) -> tuple[int, tuple[str | int, ...]]:
        """A port for TLS, and options with which it is reached."""
        folder = self.folder()
        certificate, key = Authority(folder, "ca").issue("node")
        port = free_port()
        self.node: Daemon = self.running(
            f"listen resp ssl:{port}:privateKey={key}:certKey={certificate}"
        )
        authority = str(folder / "ca.pem")
        return port, ("-p", port, "--tls", "--cacert", authority, "--no-host-check")

    def test_password(self) -> None:
        """From the environment, a URL, or asked for; a wrong one is told without showing it."""
        port = self.running("requirepass secret").port
        words = ("-p", port, "tail", "q")
        self.assertEqual(0, disque(*words, DISQUE_PASSWORD="secret")[0])
        self.assertEqual(0, disque("-u", f"disque://:secret@127.0.0.1:{port}", "tail", "q")[0])
        self.assertIn("PONG", on_terminal("-p", str(port), "--askpass", "PING", typed=b"secret\n"))
        status, _, error = disque(*words, DISQUE_PASSWORD="other-one")
        self.assertEqual(1, status)
        self.assertIn("requirepass", error)
        self.assertNotIn("other-one", error)
        self.assertIn("DISQUE_PASSWORD", disque(*words)[2])

    def test_nobody_listens(self) -> None:
        """One line that says where and why, soon, and status 1. A slow machine may have said before
        what is waited for."""
        port = free_port()
        for verb in (("drain", "q"), ("watch", "q")):
            status, output, error = disque("-p", port, *verb)
            self.assertEqual((1, ""), (status, output), verb)
            *waiting, reason = error.splitlines()
            self.assertTrue(all(line.startswith("Waiting for") for line in waiting), error)
            self.assertIn(f"127.0.0.1:{port}", reason)
            self.assertIn("refused", reason)

    def test_addresses_of_the_environment(self) -> None:
        """Of several nodes one that answers will do."""
        addresses = f"127.0.0.1:{free_port()},127.0.0.1:{self.running().port}"
        self.assertEqual(0, disque("tail", "q", DISQUE_ADDRESSES=addresses)[0])
        self.assertEqual(0, disque("dead", "list", DISQUE_ADDRESSES=addresses)[0])


class UnixSocketTests(DaemonTestCase):
    """Nodes that are reached by a Unix socket."""

    def test_verbs(self) -> None:
        """All verbs, and the blocking client, as at a port; also when there is no port at all."""
        path = self.short_folder() / "d"
        node = self.running(f"unixsocket {path}")
        node.client().call("ADDJOB", "q", "x", 0, "RETRY", 5)
        for words in (
            ("health",),
            ("tail", "q"),
            ("watch", "q", "--once"),
            ("dead", "list"),
            ("workers",),
            ("move", "q", "q2", "--timeout", "0"),
            ("drain", "q2", "--timeout", "0"),
            ("--bigqueues", "-i", "0"),
        ):
            status, _, error = disque("-s", str(path), *words)
            self.assertEqual(0, status, (words, error))
        line = b'{"queue":"q3","body":"x"}\n'
        self.assertEqual(0, disque("-s", str(path), "fill", stdin=line)[0])
        self.assertEqual(1, node.client().call("QLEN", "q3"))
        gone = disque("-s", "/no/such/socket", "tail", "q")
        self.assertEqual(1, gone[0])
        self.assertIn("unix:/no/such/socket", gone[2])


class SilenceTests(DaemonTestCase):
    """What is said while nothing happens."""

    def test_hanging(self) -> None:
        """A node that is stopped: within a moment it is said what is waited for, and for how long;
        in the end why it failed."""
        node = self.running()
        os.kill(node.pid, signal.SIGSTOP)
        self.addCleanup(os.kill, node.pid, signal.SIGCONT)
        for words in (("dead", "list"), ("drain", "q"), ("workers",), ("cluster", "check")):
            at = (f"127.0.0.1:{node.port}",) if words[0] == "cluster" else ()
            status, _, error = disque("-p", node.port, *words, *at)
            self.assertEqual(1, status)
            self.assertIn("Waiting for", error.splitlines()[0], words)

    def test_gone(self) -> None:
        """Nobody listens: that is said at once, by what gives up as by what goes on."""
        port = free_port()
        status, _, error = disque("-p", port, "dead", "list")
        self.assertEqual(1, status)
        self.assertIn("refused", error)
        words = ("-p", port, "work", "tests.worker.handlers:handlers")
        worker = started(*words, stderr=subprocess.PIPE)
        assert worker.stderr is not None
        said = b""
        while b"does not serve" not in said:
            line = worker.stderr.readline()
            self.assertTrue(line, said)
            said += line
        self.assertIn(b"for up to 20 s", said)
        worker.kill()
        worker.communicate()

    def test_lost_half_way(self) -> None:
        """A node that goes away in the middle: it is said that another one is looked for."""
        node = self.running()
        drain = started("-p", node.port, "drain", "q", "--timeout", 60, stderr=subprocess.PIPE)
        assert drain.stderr is not None
        wait_for(lambda: int(node.info()["blocked_clients"]), "it waits")
        node.kill()
        self.assertIn(b"Looking for a node", drain.stderr.readline())
        drain.send_signal(signal.SIGTERM)
        self.assertIn(b"0 jobs drained", drain.communicate(timeout=START_S)[1])
        self.assertEqual(143, drain.returncode)


class HowToTests(DaemonTestCase):
    """The documentation."""

    def test_examples(self) -> None:
        """What readers copy works, from the first line to the last."""
        folder = self.folder()
        program = folder / "disque"
        line = " ".join((*PROGRAM, "-p", str(self.running().port)))
        program.write_text(f'#!/bin/sh\nexec {line} "$@"\n')
        program.chmod(0o755)
        script = "".join(_EXAMPLE.findall(_HOW_TO.read_text()))
        path = os.pathsep.join((str(folder), os.environ["PATH"]))
        result = subprocess.run(
            ["sh", "-eu", "-c", script],
            cwd=folder,
            env=environment(PATH=path),
            capture_output=True,
            timeout=10 * START_S,
            check=False,
        )
        self.assertEqual(0, result.returncode, result.stderr.decode())


def on_terminal(*words: str, typed: bytes = b"") -> str:
    """What the program shows on a terminal."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [*PROGRAM, *words],
        env=environment(TERM="xterm", NO_COLOR="1", COLUMNS="100"),
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    )
    os.close(theirs)
    shown = b""
    with contextlib.suppress(OSError):
        while data := os.read(ours, 65536):
            shown += data
            if typed and b":" in data:
                os.write(ours, typed)
                typed = b""
    os.close(ours)
    process.wait(10)
    return shown.decode()
