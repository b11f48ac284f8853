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

#: Longer than the programs wait for an answer.
_GIVES_UP_S: Final = 120.0
_KILLS: Final = 20
_HOW_TO: Final = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "use-the-command-line.md"
_EXAMPLE: Final = re.compile(r"```sh\n(.*?)```", re.DOTALL)


class VerbTestCase(FleetTestCase):
    """One node, and helpers to add jobs to it."""

    size = 1

    def setUp(self) -> None:
        """Connect to the node."""
        super().setUp()
        (self.node,) = self.nodes
        self.connection = self.node.client()

    def call(self, *words: bytes | str | int) -> Any:
        """Send a request on the test's own connection."""
        return self.connection.call(*words)

    def run_here(self, *words: str | float) -> tuple[int, str, str]:
        """Run the program with the address of the daemon."""
        return disque("-p", self.node.port, *words)

    def add(self, queue: str, *bodies: bytes | str, **options: int) -> None:
        """ADDJOB for each body; options by their names."""
        words = [word for name, value in options.items() for word in (name.upper(), value)]
        for body in bodies:
            self.call("ADDJOB", queue, body, 0, *words)

    def length(self, queue: str) -> int:
        """The length of a queue."""
        return int(self.call("QLEN", queue))


class LookingTests(VerbTestCase):
    """Verbs that only read."""

    def test_tail_follows(self) -> None:
        """``tail -f`` shows each new job once until it is interrupted; then the status is 130."""
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
        """On a terminal letters are shown unescaped, and control bytes are still escaped."""
        self.add("q", "grüße", b"\x1b[2J\xff")
        output = on_terminal("-p", str(self.node.port), "tail", "q")
        self.assertIn('"grüße"', output)
        self.assertIn('"\\x1b[2J\\xff"', output)

    def test_watch_on_a_terminal(self) -> None:
        """On a terminal the figures are a table."""
        self.add("q", "a")
        output = on_terminal("-p", str(self.node.port), "watch", "q", "--once")
        self.assertRegex(output, r"\bq +1 ")


class MachineTests(VerbTestCase):
    """Output that other programs read is exact."""

    def test_json(self) -> None:
        """In JSON numbers are numbers, and IDs and names are complete."""
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
        """CSV has the same data, with a header, also for names with commas and arbitrary bytes."""
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
        """A verb without machine-readable output refuses the option instead of ignoring it."""
        status, output, error = self.run_here("--json", "move", "a", "b")
        self.assertEqual((2, ""), (status, output))
        self.assertIn("no output as --json", error)


class HealthTests(DaemonTestCase):
    """``disque health``, as probes run it."""

    def test_life(self) -> None:
        """The status is 0 while the node serves, and 1, with the reason, when it is leaving, full,
        or down; the check itself adds no job."""
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
        """A missing or a wrong password is reported as such; with the right one the node is
        healthy."""
        node = self.running("requirepass secret")
        self.unhealthy("NOAUTH", "-p", node.port)
        self.unhealthy("refuses the password", "-p", node.port, "-a", "other")
        self.assertEqual(0, disque("-p", node.port, "-a", "secret", "health")[0])

    def test_readonly_password(self) -> None:
        """With the read-only password verbs that look work, and commands that change something are
        refused."""
        node = self.running("requirepass secret", "readonly-password look")
        reader = ("-p", node.port, "-a", "look")
        self.assertEqual(0, disque(*reader, "health")[0])
        self.assertEqual((0, "0\n", ""), disque(*reader, "qlen", "q"))
        _status, out, err = disque(*reader, "addjob", "q", "body", 0)
        self.assertIn("NOPERM The read-only password does not allow this.", out + err)

    def test_hanging(self) -> None:
        """A probe of a node that does not answer ends after its timeout."""
        node = self.running()
        os.kill(node.pid, signal.SIGSTOP)
        self.addCleanup(os.kill, node.pid, signal.SIGCONT)
        status, output, _ = disque("health", f"127.0.0.1:{node.port}", "--timeout", 0.3, "--json")
        self.assertEqual((1, False), (status, json.loads(output)["healthy"]))
        self.assertIn("within 0.3 s", output)

    def unhealthy(self, why: str, *words: str | int) -> None:
        """Assert that the status is 1, and that the error contains this reason."""
        status, output, error = disque(*words, "health")
        self.assertEqual((1, ""), (status, output))
        self.assertIn(why, error)


class DrainTests(VerbTestCase):
    """``disque drain``."""

    def test_broken_pipe(self) -> None:
        """When the reader of the output ends early, drain ends without a traceback, and the jobs
        stay in the queue."""
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
        """Ctrl-C ends drain without a traceback and with status 130, also while it waits for
        jobs."""
        drain = started(
            *("-p", self.node.port, "drain", "q", "--timeout", 60), stderr=subprocess.PIPE
        )
        wait_for(lambda: int(self.node.info()["blocked_clients"]), "drain waits for jobs")
        drain.send_signal(signal.SIGINT)
        _, error = drain.communicate(timeout=START_S)
        self.assertEqual((130, b"0 jobs drained"), (drain.returncode, error.strip()))

    def test_keep_interrupted(self) -> None:
        """Whoever ends a copy that waits for more jobs finds all jobs in the queue: the GETJOB that
        was interrupted gets none of those that are given back."""
        self.add("q", *map(str, range(5)))
        words = ("drain", "q", "--raw", "--keep", "--timeout", 60)
        copy = started("-p", self.node.port, *words, stderr=subprocess.PIPE)
        wait_for(lambda: int(self.node.info()["blocked_clients"]), "drain waits for jobs")
        copy.terminate()
        _, error = copy.communicate(timeout=START_S)
        self.assertEqual((143, b"5 jobs copied"), (copy.returncode, error.strip()))
        self.assertEqual(5, self.length("q"))

    def test_progress(self) -> None:
        """On a terminal the progress is shown."""
        self.add("q", "a", "b")
        path = str(self.folder() / "jobs")
        words = ("-p", str(self.node.port), "drain", "q", "--to", path, "--timeout", "0.1")
        self.assertIn("2/2", on_terminal(*words))

    def test_killed(self) -> None:
        """When drain is killed and restarted many times, each job is in the file in the end."""
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

    def test_killed_drain(self) -> None:
        """A killed drain leaves a torn line, and its job in the queue: when the line is set aside,
        no job is lost."""
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
        """A job with RETRY 0 keeps it after the move, and has one copy, whatever number of copies
        is requested."""
        self.add("q", "a", retry=0, ttl=600, replicate=1)
        words = ("move", "q", "q2", "--timeout", "0.1", "--replicate", 2)
        self.assertEqual((0, "", "1 job moved\n"), self.run_here(*words))
        ((_, job_id, _),) = self.call("QPEEK", "q2", 1)
        shown = self.call("SHOW", job_id)
        shown = dict(zip(shown[::2], shown[1::2], strict=True))
        self.assertEqual((0, 1), (shown[b"retry"], shown[b"repl"]))

    def test_keeps_retry_and_ttl(self) -> None:
        """A moved job has the same RETRY, and expires at the same time."""
        self.add("q", "a", retry=77, ttl=500)
        status, _, error = self.run_here("move", "q", "q2", "--timeout", "0.1")
        self.assertEqual((0, "1 job moved\n"), (status, error))
        ((_, job_id, body),) = self.call("QPEEK", "q2", 1)
        shown = self.call("SHOW", job_id)
        shown = dict(zip(shown[::2], shown[1::2], strict=True))
        self.assertEqual((b"a", 77), (body, shown[b"retry"]))
        self.assertTrue(490 <= shown[b"ttl"] <= 500, shown[b"ttl"])
        self.assertEqual(1, int(self.node.info()["registered_jobs"]))

    def test_to_another_cluster(self) -> None:
        """Jobs can be moved to a cluster whose password is in the URL, and to a queue of the same
        name."""
        other = self.running("requirepass secret")
        self.add("q", "a", "b")
        url = f"disque://:secret@127.0.0.1:{other.port}"
        status, _, error = self.run_here("move", "q", "q", "--to-address", url, "--timeout", "0.1")
        self.assertEqual((0, "2 jobs moved\n"), (status, error))
        there = other.client()
        there.call("AUTH", "secret")
        self.assertEqual((0, 2), (self.length("q"), there.call("QLEN", "q")))

    def test_to_itself(self) -> None:
        """To move a queue to itself would never end; it is refused, whatever address is given for
        the node."""
        for words in ((), ("--to-address", f"localhost:{self.node.port}")):
            status, _, error = self.run_here("move", "q", "q", *words)
            self.assertEqual(2, status)
            self.assertIn("the same queue", error)

    def test_refused(self) -> None:
        """When the target refuses jobs, the reason is shown, the status is 1, and every job stays
        in the old queue."""
        self.add("q", "a", "b")
        self.call("PAUSE", "q2", "in")
        status, _, error = self.run_here("move", "q", "q2")
        self.assertEqual((1, 2), (status, self.length("q")))
        self.assertIn("PAUSED", error)

    def test_target_dies(self) -> None:
        """When the target dies halfway, the number of moved jobs is printed, and the others stay in
        the old queue."""
        other = self.running()
        self.add("q", *map(str, range(50)))
        words = ("-p", self.node.port, "move", "q", "q", "--rate", 50)
        move = started(*words, "--to-address", f"127.0.0.1:{other.port}", stderr=subprocess.PIPE)
        wait_for(lambda: int(other.info()["registered_jobs"]) > 3, "some jobs are moved")
        other.kill()
        wait_for(lambda: self.length("q") < 50, "the old queue is shorter")
        move.send_signal(signal.SIGINT)
        _, error = move.communicate(timeout=START_S)
        (moved,) = map(int, re.findall(rb"(\d+) jobs? moved", error))
        self.assertEqual(130, move.returncode)
        # One job may be acknowledged but not yet counted when the signal arrives.
        self.assertIn(moved + self.length("q"), (49, 50))

    def test_killed(self) -> None:
        """When move is killed and restarted many times, each job is in the target queue in the
        end."""
        words = ("-p", self.node.port, "move", "q", "q2")
        wanted = kill_often(self, words, lambda: self.length("q2"), 60)
        self.run_here(*words[2:])
        _, output, _ = self.run_here("drain", "q2", "--raw", "--timeout", "0")
        self.assertEqual(wanted, set(output.split()))


def kill_often(
    case: VerbTestCase, words: tuple[str | int, ...], measure: Callable[[], int], jobs: int
) -> set[str]:
    """Repeatedly add ``jobs`` jobs, start the program, and kill it soon after ``measure`` grows.
    Returns the bodies of all jobs. Fails if the program was never killed before its work was
    finished."""
    chance = random.Random(4)
    bodies: set[str] = set()
    in_the_middle = 0
    for round_ in range(_KILLS):
        fresh = [f"{round_}-{number}" for number in range(jobs)]
        case.add("q", *fresh, retry=1)
        bodies |= set(fresh)
        process = started(*words)
        wait_for(partial(_grows, measure, measure()), "the program has begun its work")
        time.sleep(chance.random() * 0.01)
        process.kill()
        process.wait()
        in_the_middle += case.length("q") > 0
    case.assertGreater(in_the_middle, 0)
    return bodies


def _grows(measure: Callable[[], int], before: int) -> bool:
    return measure() > before


class ConnectingTests(DaemonTestCase):
    """How the program connects to nodes, and what it prints when it cannot."""

    def test_tls(self) -> None:
        """Commands, modes and verbs use TLS and check the certificate."""
        port, options = self.tls_port()
        self.assertEqual((0, "PONG\n"), disque(*options, "PING")[:2])
        lines = b"ADDJOB q body 0\r\n" * 3000
        status, output, _ = disque(*options, "--pipe", stdin=lines)
        self.assertEqual(0, status)
        self.assertIn("errors: 0, replies: 3000", output)
        status, output, _ = disque(*options, "drain", "q", "--raw", "--timeout", "0.1")
        self.assertEqual((0, 3000), (status, len(output.splitlines())))
        status, output, error = disque(*options, "cluster", "check", f"127.0.0.1:{port}")
        self.assertEqual(0, status, output + error)

    def test_tls_refused(self) -> None:
        """Nothing is sent to a node whose certificate cannot be verified, and the error names the
        option that helps."""
        port, options = self.tls_port()
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
        """The error names the wrong option when TLS is used on a plain port, or not used on a TLS
        port."""
        port, _ = self.tls_port()
        plain = self.node.port
        for words in (("PING",), ("tail", "q")):
            status, _, error = disque("-p", plain, "--tls", *words)
            self.assertEqual(1, status)
            self.assertIn("try without --tls", error)
            status, _, error = disque("-p", port, *words)
            self.assertEqual(1, status)
            self.assertIn("try with --tls", error)

    def tls_port(self) -> tuple[int, tuple[str | int, ...]]:
        """A port for TLS, and the options to connect to it."""
        folder = self.folder()
        certificate, key = Authority(folder, "ca").issue("node")
        port = free_port()
        self.node: Daemon = self.running(
            f"listen resp ssl:{port}:privateKey={key}:certKey={certificate}"
        )
        authority = str(folder / "ca.pem")
        return port, ("-p", port, "--tls", "--cacert", authority, "--no-host-check")

    def test_password(self) -> None:
        """The password comes from the environment, a URL, or a prompt; the error for a wrong one
        does not show it."""
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

    def test_connection_refused(self) -> None:
        """Without a server, one line says where and why, soon, and the status is 1. On a slow
        machine lines about waiting may precede it."""
        port = free_port()
        for verb in (("drain", "q"), ("watch", "q")):
            status, output, error = disque("-p", port, *verb)
            self.assertEqual((1, ""), (status, output), verb)
            *waiting, reason = error.splitlines()
            self.assertTrue(all(line.startswith("Waiting for") for line in waiting), error)
            self.assertIn(f"127.0.0.1:{port}", reason)
            self.assertIn("refused", reason)

    def test_addresses_of_the_environment(self) -> None:
        """When several nodes are given, one that answers is enough."""
        addresses = f"127.0.0.1:{free_port()},127.0.0.1:{self.running().port}"
        self.assertEqual(0, disque("tail", "q", DISQUE_ADDRESSES=addresses)[0])
        self.assertEqual(0, disque("dead", "list", DISQUE_ADDRESSES=addresses)[0])


class UnixSocketTests(DaemonTestCase):
    """Nodes with a Unix socket."""

    def test_verbs(self) -> None:
        """All verbs, and the blocking client, work over a Unix socket, also on a node without a TCP
        port."""
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


class WaitingTests(DaemonTestCase):
    """What is printed while the program waits for a node."""

    def test_hanging(self) -> None:
        """When a node does not answer, a message soon says what the program waits for, and for how
        long; in the end an error says why it failed."""
        node = self.running()
        os.kill(node.pid, signal.SIGSTOP)
        self.addCleanup(os.kill, node.pid, signal.SIGCONT)
        check = ("cluster", "check", f"127.0.0.1:{node.port}")
        verbs = [
            started("-p", node.port, *words, stderr=subprocess.PIPE)
            for words in (("dead", "list"), ("drain", "q"), ("workers",), check)
        ]
        for verb in verbs:
            _, error = verb.communicate(timeout=_GIVES_UP_S)
            self.assertEqual(1, verb.returncode)
            self.assertIn(b"Waiting for", error.splitlines()[0], verb.args)

    def test_refused(self) -> None:
        """When the connection is refused, that is reported at once, by verbs that give up and by
        workers that retry."""
        port = free_port()
        status, _, error = disque("-p", port, "dead", "list")
        self.assertEqual(1, status)
        self.assertIn("refused", error)
        words = ("-p", port, "work", "tests.worker.handlers:handlers")
        worker = started(*words, stderr=subprocess.PIPE)
        assert worker.stderr is not None
        printed = b""
        while b"does not serve" not in printed:
            line = worker.stderr.readline()
            self.assertTrue(line, printed)
            printed += line
        self.assertIn(b"for up to 20 s", printed)
        worker.kill()
        worker.communicate()

    def test_lost_half_way(self) -> None:
        """When the connection is lost, the program reports that it looks for another node."""
        node = self.running()
        drain = started("-p", node.port, "drain", "q", "--timeout", 60, stderr=subprocess.PIPE)
        assert drain.stderr is not None
        wait_for(lambda: int(node.info()["blocked_clients"]), "drain waits for jobs")
        node.kill()
        self.assertIn(b"Looking for a node", drain.stderr.readline())
        drain.send_signal(signal.SIGTERM)
        self.assertIn(b"0 jobs drained", drain.communicate(timeout=START_S)[1])
        self.assertEqual(143, drain.returncode)


class HowToTests(DaemonTestCase):
    """The documentation of the command line."""

    def test_examples(self) -> None:
        """All examples that readers copy work, from the first to the last."""
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
    """What the program prints on a terminal."""
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
