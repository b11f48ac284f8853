"""``disque import``, with a real redis-server, RQ and beanstalkd."""

from __future__ import annotations

import json
import os
import random
import socket
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import redis
from twisted.trial.unittest import SkipTest

from disque_tx.cli.verbs.imports.beanstalk import Beanstalk
from disque_tx.client.blocking import Disque
from tests.acceptance.beanstalk import run_beanstalkd
from tests.acceptance.daemon import DaemonTestCase, wait_for
from tests.acceptance.disque import disque, started
from tests.acceptance.redisserver import RedisServer

#: How often an import is killed.
_KILLS = int(os.environ.get("IMPORT_KILLS", "4"))
_JOBS = 2000


class ImportTestCase(DaemonTestCase):
    """One node."""

    def setUp(self) -> None:
        self.node = self.running()
        self.client = Disque(f"127.0.0.1:{self.node.port}")
        self.addCleanup(self.client.close)

    def run_import(self, *words: str) -> tuple[int, str, str]:
        """Run the program until it ends."""
        return disque("-p", self.node.port, "import", *words)

    def run_killed(self, *words: str) -> bool:
        """Run it, and kill it at some moment while it moves jobs; whether it had moved all."""
        before = self.registered()
        process = started("-p", self.node.port, "import", *words)
        some = before + random.randrange(1, 60)
        wait_for(
            lambda: self.registered() >= some or process.poll() is not None, "some jobs are moved"
        )
        process.kill()
        return process.wait() == 0

    def registered(self) -> int:
        """How many jobs the node has."""
        return int(self.client.info("jobs")["registered_jobs"])

    def taken(self, *queues: str) -> list[bytes]:
        """The bodies of all jobs that can be delivered now."""
        bodies: list[bytes] = []
        while jobs := self.client.take(*queues, count=500, no_hang=True):
            bodies += [job.data for job in jobs]
            self.client.ack_jobs(*[job.id for job in jobs])
        return bodies


class RQTests(ImportTestCase):
    """``disque import rq``. The jobs are made by RQ itself."""

    def setUp(self) -> None:
        try:
            import rq
        except ImportError:
            raise SkipTest("RQ is not installed; it is in the extra 'test'.") from None
        super().setUp()
        self.server = RedisServer(Path(self.folder())).start()
        self.addCleanup(self.server.stop)
        self.redis = redis.Redis(port=self.server.port)
        self.addCleanup(self.redis.close)
        self.rq: Any = rq
        self.queue: Any = rq.Queue("mail", connection=self.redis)

    def calls(self, queue: str = "mail") -> list[dict[str, Any]]:
        """The calls that can be delivered now."""
        return [json.loads(body) for body in self.taken(queue)]

    def test_moved(self) -> None:
        """Waiting jobs are moved in their order, scheduled ones wait here until they are due, and
        RQ has none of them any more."""
        for number in range(5):
            self.queue.enqueue("shop.send", number, to="a")
        self.queue.enqueue_at(datetime.now(UTC) + timedelta(days=1), "shop.send", "later")
        status, output, error = self.run_import("rq", self.server.url)
        self.assertEqual((0, "", "6 jobs moved, 0 left\n"), (status, output, error))
        self.assertEqual([[number] for number in range(5)], [call["args"] for call in self.calls()])
        (later,) = self.client.job_scan("mail")
        self.assertTrue(86_000 < later.delay_s <= 86_401, later.delay_s)
        self.assertEqual([b"rq:queues"], list(self.redis.scan_iter("rq:*")))

    def test_left(self) -> None:
        """What cannot be moved stays as it is, and is listed with the reason; other jobs behind it
        are moved."""
        first = self.queue.enqueue("shop.send", b"bytes")
        parent = self.queue.enqueue("shop.send", 1)
        child = self.queue.enqueue("shop.send", 2, depends_on=parent)
        self.queue.enqueue("shop.send", 3)
        for words in (("--dry-run",), ()):
            status, output, error = self.run_import("rq", self.server.url, *words)
            self.assertEqual(0, status, error)
            self.assertIn(f"left\tmail\t{first.id}\tits arguments hold a bytes", output)
            self.assertIn(f"left\tmail\t{parent.id}\tother jobs depend on it", output)
            self.assertIn("left\tmail\t1 job\tthey depend on other jobs", output)
            self.assertIn("3 left", error)
            keys = [f"rq:job:{job.id}" for job in (first, parent, child)]
            self.assertEqual(3, self.redis.exists(*keys))
            self.assertEqual(0 if words else 1, self.registered())
        self.assertEqual([[3]], [call["args"] for call in self.calls()])
        self.assertEqual([first.id, parent.id], self.queue.job_ids)

    def test_refused(self) -> None:
        """When the node refuses jobs, RQ keeps them all, in their order."""
        ids = [self.queue.enqueue("shop.send", number).id for number in range(3)]
        self.client.pause("mail", "in")
        status, _, error = self.run_import("rq", self.server.url)
        self.assertEqual(1, status)
        self.assertIn("PAUSED", error)
        self.assertEqual(ids, self.queue.job_ids)
        self.assertFalse(self.redis.exists("rq:disque-import"))

    def test_errors(self) -> None:
        """A server that is away, or an address that is none, is an error for people."""
        for url in ("redis://127.0.0.1:1", "http://x"):
            status, output, error = self.run_import("rq", url)
            self.assertEqual((1, ""), (status, output))
            self.assertTrue(error.startswith("disque import: "), error)

    def test_two_at_once(self) -> None:
        """A second import of the same server is refused: it would take the claims of the first one
        for those of a dead one."""
        other = redis.Redis(port=self.server.port, client_name="disque-import-other")
        self.addCleanup(other.close)
        other.ping()
        status, _, error = self.run_import("rq", self.server.url)
        self.assertEqual(1, status)
        self.assertIn("Another import", error)

    def test_killed(self) -> None:
        """An import that is killed again and again loses no job, and doubles at most one each
        time."""
        for start in range(0, _JOBS, 500):
            many = [
                self.rq.Queue.prepare_data("shop.send", (number,))
                for number in range(start, start + 500)
            ]
            self.queue.enqueue_many(many)
        for _ in range(_KILLS):
            self.run_killed("rq", self.server.url)
        status, _, error = self.run_import("rq", self.server.url)
        self.assertEqual(0, status, error)
        found = Counter(call["args"][0] for call in self.calls())
        self.assertEqual(set(range(_JOBS)), set(found))
        self.assertLessEqual(found.total() - _JOBS, _KILLS)
        self.assertEqual([b"rq:queues"], list(self.redis.scan_iter("rq:*")))


class BeanstalkdTests(ImportTestCase):
    """``disque import beanstalkd``."""

    def setUp(self) -> None:
        super().setUp()
        port = run_beanstalkd(self)
        self.address = f"127.0.0.1:{port}"
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.addCleanup(self.socket.close)
        self.stream = self.socket.makefile("rb")
        self.addCleanup(self.stream.close)
        self.say("use mail")
        self.say("watch mail")

    def say(self, request: str) -> str:
        """A request, and the first line of the answer."""
        self.socket.sendall(request.encode() + b"\r\n")
        line: bytes = self.stream.readline()
        return line.decode().strip()

    def put(self, body: str, priority: int = 5000, delay_s: int = 0, ttr_s: int = 77) -> None:
        """Add a job."""
        answer = self.say(f"put {priority} {delay_s} {ttr_s} {len(body)}\r\n{body}")
        self.assertTrue(answer.startswith("INSERTED"), answer)

    def bury(self) -> None:
        """Bury the next job."""
        _, number, _ = self.say("reserve").split()
        self.stream.readline()
        self.assertEqual("BURIED", self.say(f"bury {number} 5"))

    def left(self) -> int:
        """How many jobs beanstalkd has."""
        source = Beanstalk(self.address)
        try:
            stats = source.tube_stats("mail") or {}
            states = ("ready", "delayed", "buried", "reserved")
            return sum(int(stats.get(f"current-jobs-{state}", 0)) for state in states)
        finally:
            source.close()

    def all_moved(self) -> bool:
        """Import again; whether nothing is left."""
        status, _, error = self.run_import("beanstalkd", self.address)
        self.assertEqual(0, status, error)
        return self.left() == 0

    def test_moved(self) -> None:
        """Ready jobs are moved in the order of their priorities, delayed ones wait here, buried
        ones become dead letters, and the TTR of each is its RETRY."""
        self.put("buried")
        self.bury()
        for priority in (7000, 10, 6000):
            self.put(f"p{priority}", priority)
        self.put("later", delay_s=5000)
        status, output, error = self.run_import("beanstalkd", self.address)
        self.assertEqual((0, "", "5 jobs moved, 0 left\n"), (status, output, error))
        self.assertEqual(0, self.left())
        (later,) = [job for job in self.client.job_scan("mail") if job.state == "active"]
        self.assertTrue(4900 < later.delay_s <= 5000)
        self.assertEqual(77, later.retry_s)
        self.assertEqual([b"p10", b"p6000", b"p7000"], self.taken("mail"))
        status, output, error = disque(
            "-p", self.node.port, "dead", "requeue", "dead:mail", "--all", "--yes"
        )
        self.assertEqual(0, status, error)
        self.assertEqual([b"buried"], self.taken("mail"))

    def test_urgent(self) -> None:
        """Urgent jobs can go to a queue of their own."""
        self.put("a", 5000)
        self.put("b", 1)
        self.run_import("beanstalkd", self.address, "--urgent-to", "first", "--to", "rest")
        self.assertEqual(([b"b"], [b"a"]), (self.taken("first"), self.taken("rest")))

    def test_left(self) -> None:
        """Jobs that workers have stay with them, and are listed; a dry run moves nothing."""
        for body in ("a", "b"):
            self.put(body)
        self.say("reserve")
        self.stream.readline()
        for words in (("--dry-run",), ()):
            status, output, error = self.run_import("beanstalkd", self.address, *words)
            self.assertEqual(0, status, error)
            self.assertIn("left\tmail\t1 job\treserved", output)
            self.assertEqual(2 if words else 1, self.left())

    def test_refused(self) -> None:
        """When the node refuses jobs, beanstalkd keeps them all."""
        self.put("a")
        self.put("later", delay_s=5000)
        self.client.pause("mail", "in")
        status, _, error = self.run_import("beanstalkd", self.address)
        self.assertEqual((1, 2), (status, self.left()))
        self.assertIn("PAUSED", error)

    def test_errors(self) -> None:
        """A server that is away, or is no beanstalkd, is an error for people."""
        for address in ("127.0.0.1:1", f"127.0.0.1:{self.node.port}", "x:y"):
            status, output, error = self.run_import("beanstalkd", address)
            self.assertEqual((1, ""), (status, output), error)
            self.assertTrue(error.startswith("disque import: "), error)

    def test_killed(self) -> None:
        """An import that is killed again and again loses no job, and doubles at most one each
        time."""
        for number in range(_JOBS):
            self.put(str(number), delay_s=5000 if number % 10 == 0 else 0)
        for _ in range(_KILLS):
            self.run_killed("beanstalkd", self.address)
        # Jobs that the last one had reserved come back when beanstalkd sees the connection end.
        wait_for(self.all_moved, "all jobs are moved")
        bodies = Counter(job.body for job in self.client.job_scan("mail"))
        self.assertEqual({b"%d" % number for number in range(_JOBS)}, set(bodies))
        self.assertLessEqual(bodies.total() - _JOBS, _KILLS)
