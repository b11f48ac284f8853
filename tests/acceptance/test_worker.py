"""Workers in processes of their own, with real daemons."""

from __future__ import annotations

import contextlib
import io
import json
import re
import signal
import subprocess
import sys
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any, Final

from click.testing import CliRunner, Result
from twisted.internet import reactor

from disque_tx import Disque
from disque_tx.cli.options import ClientOptions
from disque_tx.cli.verbs.queues import dead
from disque_tx.worker import JobFailed, Letter, ResultTimeout
from tests.acceptance.cluster.fleet import Fleet
from tests.acceptance.daemon import DaemonTestCase, environment, wait_for
from tests.acceptance.disque import disque
from tests.worker import handlers

_ROOT: Final = Path(__file__).resolve().parents[2]
_DOCS: Final = _ROOT / "docs" / "how-to"
_EXAMPLE: Final = re.compile(r"```python\n(.*?)```", re.DOTALL)
_WORK: Final = "from disque_tx.cli.verbs.workers.work import command; command()"
_JOBS: Final = 2000


class WorkTestCase(DaemonTestCase):
    """Starts ``disque work``."""

    def setUp(self) -> None:
        """Create a file to which handlers write."""
        self.work_folder = self.folder()
        self.file = self.work_folder / "done"
        self.file.touch()

    def client(self, address: str) -> Disque:
        """A client that is closed at the end of the test."""
        client = Disque(address)
        self.addCleanup(client.close)
        return client

    def work(self, address: str, target: str, *words: str, cwd: Path = _ROOT) -> Any:
        """Start a worker in a process of its own."""
        with open(self.work_folder / "worker.out", "ab") as output:
            worker = subprocess.Popen(
                [sys.executable, "-c", _WORK, target, "--addresses", address, *words],
                env=environment(DONE=str(self.file)),
                cwd=cwd,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
            )
        self.addCleanup(self.end, worker)
        return worker

    def end(self, worker: subprocess.Popen[bytes]) -> None:
        """Kill the worker."""
        worker.kill()
        worker.wait()

    def output(self) -> str:
        """What the workers have logged."""
        return (self.work_folder / "worker.out").read_text()

    def done(self) -> list[bytes]:
        """The lines that handlers wrote: one per job done."""
        return self.file.read_bytes().splitlines()

    def wait_for_part(self, part: int) -> None:
        """Wait until more than ``part`` different jobs are done."""
        wait_for(lambda: len(set(self.done())) > part, f"{part} jobs are done", 30)

    def drain(self, worker: subprocess.Popen[bytes]) -> int:
        """Stop the worker with SIGTERM; returns the exit status."""
        worker.send_signal(signal.SIGTERM)
        return worker.wait(20)


class OneNodeTests(WorkTestCase):
    """One daemon, with workers."""

    def setUp(self) -> None:
        """Start the daemon and a client."""
        super().setUp()
        self.node = self.running()
        self.address = f"127.0.0.1:{self.node.port}"
        self.disque = self.client(self.address)

    def registered(self) -> int:
        """The number of jobs on the node."""
        return int(self.node.info()["registered_jobs"])

    def reasons(self, queue: str) -> list[str]:
        """The reasons in the dead letters of a queue."""
        letters = self.disque.queue_peek(f"dead:{queue}", 100)
        return [Letter.decoded(job.body).reason for job in letters]

    def test_kinds(self) -> None:
        """Every kind of handler does its jobs; one that raises, exits, crashes or hangs fails only
        its own job, and the dead letter gives the reason."""
        failing = {
            "leave": "SystemExit: leave",
            "crash": "HandlerDied: The process of the handler ended: exit status 7",
            "hang": "TimeLimitPassed: It took longer than 0.5 s.",
            "false": "HandlerDied: exit status 4: it is broken",
            "slow": "TimeLimitPassed: It took longer than 0.5 s.",
            "absent": "No such file or directory",
            "true": "HandlerDied: exit status 1",
            "calls": "Undecodable: The body is not JSON",
        }
        for queue in (*failing, "note", "coroutine", "together", "together"):
            self.disque.add_job(queue, b"bad", retry_s=60)
        self.disque.add_job("true", b"good", retry_s=60)
        worker = self.work(self.address, "tests.worker.handlers:handlers", "--dead-after", "0")
        wait_for(lambda: self.registered() == len(failing), "all other jobs are done", 30)
        for queue, reason in failing.items():
            (found,) = wait_for(partial(self.reasons, queue), f"{queue} has a dead letter")
            self.assertIn(reason, found, queue)
        self.assertEqual({b"bad", b"bad,bad"}, set(self.done()))
        self.assertEqual(0, self.drain(worker))

    def test_results(self) -> None:
        """The result of a task is returned to the caller, or the reason why it failed."""
        handlers.queue.connect(self.disque)
        late = handlers.add.delay(3, 4)
        self.assertRaises(ResultTimeout, late.result, 0.1)
        worker = self.work(self.address, "tests.worker.handlers:queue")
        self.assertEqual(7, late.result(20))
        self.assertEqual(7, late.result(0))
        self.assertEqual(42, handlers.times_two.delay(number=21).result(20))
        self.assertEqual(1, handlers.attempt.options(ttl_s=60).delay().result(20))
        first, second = (handlers.where.delay("here").result(20) for _ in range(2))
        self.assertEqual(first, second)
        self.assertNotIn(first, (worker.pid, 0))
        for pending, reason in (
            (handlers.refuse.delay("never"), "Hopeless: never"),
            (handlers.where.delay("exit"), "exit status 3"),
            (handlers.opaque.delay(), "JSON cannot carry"),
            (handlers.add.delay(**{"left": 1}), "TypeError"),
        ):
            error = self.assertRaises(JobFailed, pending.result, 20)
            self.assertIn(reason, str(error))
        self.assertEqual(0, self.drain(worker))
        self.assertEqual(4, self.registered())

    def test_twisted_results(self) -> None:
        """The client for Twisted also returns results of tasks."""
        worker = self.work(self.address, "tests.worker.handlers:queue")
        program = (
            "import sys\n"
            "from twisted.internet import task\n"
            "from disque_tx.client import DisqueClient\n"
            "from disque_tx.worker import JobFailed\n"
            "from tests.worker import handlers\n"
            "async def main(reactor, address):\n"
            "    client = DisqueClient(address, reactor=reactor)\n"
            "    handlers.queue.connect(client)\n"
            "    pending = await handlers.add.delay(1, 2)\n"
            "    print(await pending.result(20), await pending.result(20))\n"
            "    try:\n"
            "        await (await handlers.refuse.delay('no')).result(20)\n"
            "    except JobFailed as error:\n"
            "        print(error)\n"
            "    await client.close()\n"
            "task.react(main, sys.argv[1:])\n"
        )
        words = [sys.executable, "-c", program, self.address]
        finished = subprocess.run(
            words,
            cwd=_ROOT,
            env=environment(),
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        self.assertEqual(("", "3 3\nHopeless: no\n"), (finished.stderr, finished.stdout))
        self.assertEqual(0, self.drain(worker))

    def add_many(self, retry_s: int) -> set[bytes]:
        """Add 2000 jobs; returns their bodies."""
        bodies = {str(number).encode() for number in range(_JOBS)}
        for body in bodies:
            self.disque.add_job("many", body, retry_s=retry_s)
        return bodies

    def test_sigterm(self) -> None:
        """Workers that are replaced during their work lose no job, do none twice, and return at
        once those that they have not begun."""
        bodies = self.add_many(retry_s=600)
        for part in (200, 700, 1200):
            worker = self.work(self.address, "tests.worker.handlers:slowly", "--queue", "many")
            self.wait_for_part(part)
            self.assertEqual(0, self.drain(worker))
            self.assertEqual(_JOBS - len(self.done()), self.disque.queue_length("many"))
        worker = self.work(self.address, "tests.worker.handlers:slowly", "--queue", "many")
        wait_for(lambda: self.registered() == 0, "all jobs are done", 30)
        self.assertEqual(0, self.drain(worker))
        self.assertEqual(dict.fromkeys(bodies, 1), dict(Counter(self.done())))

    def test_sigkill(self) -> None:
        """Workers that are killed lose no job either; their jobs are delivered again."""
        bodies = self.add_many(retry_s=2)
        for part in (200, 700, 1200):
            worker = self.work(self.address, "tests.worker.handlers:slowly", "--queue", "many")
            self.wait_for_part(part)
            self.end(worker)
        worker = self.work(self.address, "tests.worker.handlers:slowly", "--queue", "many")
        wait_for(lambda: self.registered() == 0, "all jobs are done", 30)
        self.assertEqual(0, self.drain(worker))
        self.assertEqual(bodies, set(self.done()))
        self.assertLess(len(self.done()), _JOBS * 1.5)

    def test_lost_slots(self) -> None:
        """A worker whose threads all hang ends with a special exit status; its jobs are delivered
        again."""
        self.disque.add_job("hang", b"", retry_s=1)
        words = ("--queue", "hang", "--concurrency", "1", "--time-limit", "0.3")
        worker = self.work(self.address, "tests.worker.handlers:hang", *words)
        self.assertEqual(70, worker.wait(20))
        self.assertIn("Restart the process", self.output())
        wait_for(lambda: self.disque.queue_length("hang"), "the job is queued again")

    def test_second_signal(self) -> None:
        """A second signal ends a worker at once, without waiting for its jobs."""
        self.disque.add_job("hang", b"", retry_s=60)
        worker = self.work(self.address, "tests.worker.handlers:hang", "--queue", "hang")
        # A job on its way to the worker would be given back.
        heartbeats = partial(self.disque.info, "commandstats")
        wait_for(lambda: "cmdstat_working" in heartbeats(), "the worker holds the job")
        worker.send_signal(signal.SIGTERM)
        wait_for(lambda: "stops, with 1 job here" in self.output(), "the worker stops fetching")
        worker.send_signal(signal.SIGTERM)
        self.assertEqual(130, worker.wait(5))

    def test_node_restarts(self) -> None:
        """A worker continues after a restart of its node."""
        worker = self.work(self.address, "tests.worker.handlers:note", "--queue", "q")
        self.disque.add_job("q", b"before")
        wait_for(lambda: self.done() == [b"before"], "the first job is done")
        self.node.kill()
        self.node.start()
        self.disque.add_job("q", b"after")
        wait_for(lambda: self.done() == [b"before", b"after"], "the second job is done", 30)
        self.assertEqual(0, self.drain(worker))

    def test_bad_targets(self) -> None:
        """A target that has no handlers is explained in the error, with status 2."""
        for target, message in (
            ("tests.worker.handlers", "is not package.module:name"),
            ("no.such:thing", "There is no module 'no'"),
            ("tests.worker.handlers:nothing", "has no attribute 'nothing'"),
            ("tests.worker.handlers:not_handlers", "3 cannot be used as handlers"),
            ("tests.worker.handlers:note", "name its queue with one --queue"),
        ):
            (self.work_folder / "worker.out").write_text("")
            worker = self.work(self.address, target)
            self.assertEqual(2, worker.wait(20), target)
            self.assertIn(message, self.output())

    def test_listed(self) -> None:
        """Workers are listed with the number of jobs they hold, whichever node they are connected
        to."""
        self.disque.add_job("hang", b"x")
        worker = self.work(self.address, "tests.worker.handlers:handlers", "--name", "a b/c")

        def listed() -> Any:
            status, output, _ = disque("-p", self.node.port, "workers", "--json")
            self.assertEqual(0, status)
            rows = [json.loads(line) for line in output.splitlines()]
            return [row for row in rows if row["held"] == 1]

        (row,) = wait_for(listed, "the worker reports the job it holds", 30)
        self.assertEqual(("a b/c", 8), (row["worker"], row["slots"]))
        self.assertIn("hang", row["queues"])
        self.assertFalse(row["more_queues"])
        self.assertIn("a b/c", disque("-p", self.node.port, "workers")[1])
        worker.kill()
        worker.wait()
        wait_for(
            lambda: not disque("-p", self.node.port, "workers", "--json")[1],
            "the worker is no longer listed",
            30,
        )

    def test_import_fails(self) -> None:
        """When a module cannot be imported, the error shows the line that failed, and the status is
        2."""
        (self.work_folder / "broken.py").write_text("def f():\n    return 1 / 0\n\nf()\n")
        worker = self.work(self.address, "broken:handlers", cwd=self.work_folder)
        self.assertEqual(2, worker.wait(20))
        self.assertIn("line 2, in f", self.output())
        self.assertIn("Module 'broken' cannot be imported: ZeroDivisionError", self.output())

    def test_blocked_reactor(self) -> None:
        """The log names a coroutine that blocks the reactor, while it does, with its current
        line."""
        (self.work_folder / "blocks.py").write_text(
            "import time\n\nasync def think(job):\n    time.sleep(5)\n\nhandlers = {'q': think}\n"
        )
        self.disque.add_job("q", b"x")
        worker = self.work(self.address, "blocks:handlers", cwd=self.work_folder)
        wait_for(
            lambda: "think has blocked the reactor for 2" in self.output(),
            "the coroutine is named",
            30,
        )
        self.assertIn("time.sleep(5)", self.output())
        self.assertEqual(0, self.drain(worker))

    # -- dead letters ------------------------------------------------------------------------

    def dead(self, *words: str, typed: str = "") -> Result:
        """Run ``disque dead``."""
        return command_dead(self.node, *words, typed=typed)

    def test_hostile_letters(self) -> None:
        """Letters that somebody made up are listed as JSON, and are not in the way of the others
        when all are put back: neither those that cannot be read nor one that a node refuses."""
        good = Letter("back", "D-a", b"x", "why", "", "w", 0, 0, 0.0, (), 60, 600, 1)
        values: dict[str, Any] = json.loads(good.encoded())
        changes: list[dict[str, Any]] = [
            {"queue": "\ud800"}, {"failed_at_s": float("nan")}, {"failed_at_s": 1e300},
            {"queue": "closed"}, {"reason": "\ud800"},
        ]  # fmt: skip
        for number, change in enumerate(changes):
            body = json.dumps({**values, "id": str(number), **change}).encode()
            self.disque.add_job("dead:back", body)
        self.disque.add_job("dead:back", good.encoded())
        listed = self.dead("list", "back", "--json").stdout
        rows = [json.loads(line, parse_constant=self.fail) for line in listed.splitlines()]
        self.assertEqual(6, len(rows))
        self.assertEqual(6, len(self.dead("list", "back", "--csv").stdout.splitlines()) - 1)
        self.node.client().call("PAUSE", "closed", "in")
        done = self.dead("requeue", "back", "--all", "--yes")
        self.assertEqual(1, done.exit_code)
        self.assertIsInstance(done.exception, SystemExit)
        self.assertEqual(4, done.stderr.count(" stays: "), done.stderr)
        self.assertEqual(2, self.disque.queue_length("back"))
        self.assertEqual("4 dropped\n", self.dead("drop", "back", "--all", "--yes").stdout)

    def test_dead(self) -> None:
        """Dead letters can be listed, shown, requeued and dropped; other jobs in their queue are
        listed, too."""
        ids = [self.disque.add_job("crash", f"body {n}") for n in range(3)]
        worker = self.work(self.address, "tests.worker.handlers:handlers", "--dead-after", "0")
        wait_for(lambda: self.disque.queue_length("dead:crash") == 3, "all jobs are dead letters")
        self.assertEqual(0, self.drain(worker))
        (copied,) = self.disque.queue_peek("dead:crash", 1)
        self.disque.add_job("dead:crash", copied.body)
        stranger = self.disque.add_job("dead:crash", b"\x1b[31mnothing")

        rows = [json.loads(line) for line in self.dead("list", "--json").stdout.splitlines()]
        self.assertEqual({*ids, stranger}, {row["id"] for row in rows})
        self.assertEqual([1, 1, 1, 2], sorted(row["letters"] for row in rows))
        self.assertNotIn("\x1b", self.dead("list", "crash").stdout)
        shown = json.loads(self.dead("show", ids[1], "--json").stdout)
        self.assertEqual(("crash", "body 1"), (shown["queue"], shown["body"]))
        self.assertIn("exit status 7", self.dead("show", ids[1]).stdout)

        self.assertEqual("1 requeued\n", self.dead("requeue", "--id", ids[0]).stdout)
        (again,) = self.disque.get_jobs("crash")
        self.assertEqual(b"body 0", again.body)
        self.assertNotIn(ids[0], self.dead("list").stdout)
        self.assertEqual("1 dropped\n", self.dead("drop", "crash", "--id", stranger).stdout)
        self.assertEqual(1, self.dead("drop", "--all", typed="n\n").exit_code)
        self.assertEqual(2, self.dead("drop").exit_code)
        self.assertEqual(1, self.dead("drop", "--id", "unknown").exit_code)
        self.assertEqual("2 dropped\n", self.dead("drop", "--all", "--yes").stdout)
        self.assertEqual(
            ("", 0), (self.dead("list").stdout, self.disque.queue_length("dead:crash"))
        )

    def test_requeued_as_it_was(self) -> None:
        """A requeued job keeps its RETRY and number of copies, and its original time to live; a job
        with RETRY 0 is again delivered at most once."""
        self.disque.add_job("crash", "once", retry_s=0, ttl_s=600, replicate=1)
        self.disque.add_job("crash", "often", retry_s=77, ttl_s=5000)
        worker = self.work(self.address, "tests.worker.handlers:handlers", "--dead-after", "0")
        wait_for(lambda: self.disque.queue_length("dead:crash") == 2, "both jobs are dead letters")
        self.assertEqual(0, self.drain(worker))
        self.assertEqual(0, self.dead("requeue", "--all", "--yes").exit_code)
        found = {}
        for job in self.disque.queue_peek("crash"):
            details = self.disque.show(job.id)
            assert details is not None
            found[job.body] = (details.retry_s, details.replicate, details.ttl_s)
        self.assertEqual((0, 1), found[b"once"][:2])
        self.assertEqual((77, 1), found[b"often"][:2])
        self.assertTrue(590 <= found[b"once"][2] <= 600, found)
        self.assertTrue(4990 <= found[b"often"][2] <= 5001, found)

    def test_how_tos(self) -> None:
        """The examples of the documentation run, with the workers that they describe."""
        module = self.work_folder / "shop.py"
        text = (_DOCS / "run-workers.md").read_text().replace("127.0.0.1:7711", self.address)
        programs = _EXAMPLE.findall(text)
        module.write_text(programs[0])
        self.disque.add_job("sizes", b"four")
        worker = self.work(self.address, "shop:handlers", cwd=self.work_folder)
        sys.path.insert(0, str(self.work_folder))
        self.addCleanup(sys.path.remove, str(self.work_folder))
        self.addCleanup(sys.modules.pop, "shop", None)
        names: dict[str, Any] = {}
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            for program in programs[1:]:
                exec(program, names)
        self.assertEqual("5\nno such customer\n", printed.getvalue())
        (service,) = names["make_service"](reactor)
        self.assertIn("disque-worker:", service.name)
        wait_for(lambda: "4 bytes" in self.output(), "the worker has printed")
        self.assertEqual(0, self.drain(worker))
        page = (_DOCS / "retry-and-dead-letters.md").read_text()
        text = page.partition("## Read letters in programs")[2]
        text = text.replace("127.0.0.1:7711", self.address)
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            for program in _EXAMPLE.findall(text):
                exec(program, names)
        self.assertIn("Hopeless: no such customer", printed.getvalue())


def command_dead(node: Any, *words: str, typed: str = "") -> Result:
    """Run ``disque dead`` with the address of a node."""
    options = ClientOptions()
    options.host, options.port = node.ip, node.port
    return CliRunner().invoke(dead.command, list(words), input=typed, obj=options)


class ClusterTests(WorkTestCase):
    """A cluster of three nodes."""

    def setUp(self) -> None:
        """Start a cluster for this test only, because it kills a node."""
        super().setUp()
        self.fleet = Fleet(3)
        self.addCleanup(self.fleet.discard)
        self.fleet.start()

    def test_node_dies(self) -> None:
        """When the node that delivers dies, the worker continues with another one, and all jobs are
        done; dead letters on all nodes are found."""
        first, second, third = self.fleet.nodes
        bodies = {str(number).encode() for number in range(200)}
        for number, body in enumerate(sorted(bodies)):
            node = (first, second, third)[number % 3]
            node.call("ADDJOB", "q", body, 5000, "REPLICATE", 2, "RETRY", 2)
        address = f"{first.ip}:{first.port}"
        worker = self.work(address, "tests.worker.handlers:slowly", "--queue", "q")
        wait_for(lambda: len(self.done()) > 50, "some jobs are done", 30)
        first.kill()
        wait_for(lambda: set(self.done()) == bodies, "all jobs are done", 40)
        self.assertEqual(0, self.drain(worker))
        for number, node in enumerate((second, third)):
            letter = Letter("q", str(number), b"", "why", "", "w", 0, 0, 0.0)
            node.call("ADDJOB", "dead:q", letter.encoded(), 5000, "REPLICATE", 1)
        listed = command_dead(second, "list", "--json")
        rows = [json.loads(line) for line in listed.stdout.splitlines()]
        self.assertEqual({"0", "1"}, {row["id"] for row in rows})
        self.assertIn(first.ip, listed.stderr)
