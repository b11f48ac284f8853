"""Libraries that people use with Disque, unchanged, with the daemon."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pydisque.client
import redis
import txredisapi
from twisted.internet.defer import Deferred, inlineCallbacks
from twisted.trial.unittest import TestCase

from disque_tx.commands.table import standard_registry
from tests.acceptance.daemon import DaemonTestCase, environment

_ROOT = Path(__file__).resolve().parents[2]


class RedisPyTests(DaemonTestCase):
    """redis-py in two major versions; support for one of them must not break the other."""

    def compare(self, version: int, protocol: int, folder: str = "") -> None:
        """Run the library from ``folder``, or the installed one, and compare the replies."""
        daemon = self.running("requirepass secret", "protected-mode no")
        paths = os.pathsep.join(filter(None, [folder, str(_ROOT), environment()["PYTHONPATH"]]))
        words = (str(daemon.port), "secret", str(protocol))
        done = subprocess.run(
            [sys.executable, "-m", "tests.acceptance.redispy", *words],
            env=environment() | {"PYTHONPATH": paths},
            capture_output=True,
            text=True,
            check=False,
        )
        self.assertEqual(0, done.returncode, done.stderr)
        self.assertEqual(expected(version), json.loads(done.stdout))

    def older(self) -> str:
        """The folder where the older major version is installed."""
        folder = os.environ.get("REDIS_PY_7", "")
        self.assertTrue(
            Path(folder, "redis").is_dir() if folder else False,
            "REDIS_PY_7 must name a folder made with"
            " \"pip install --target <folder> 'redis>=7,<8'\"",
        )
        return folder

    def test_version_8(self) -> None:
        """The installed version works; it uses HELLO 3 by default."""
        self.compare(8, protocol=0)

    def test_version_8_resp2(self) -> None:
        """The installed version also works with RESP2."""
        self.compare(8, protocol=2)

    def test_version_7(self) -> None:
        """The previous major version works; it uses RESP2 by default."""
        self.compare(7, 0, self.older())

    def test_version_7_resp3(self) -> None:
        """The previous major version also works with RESP3."""
        self.compare(7, 3, self.older())


def expected(version: int) -> dict[str, Any]:
    """The replies that every version receives, with either protocol."""
    counters = ["nacks", 0, "additional-deliveries", 0]
    return {
        "version": str(version),
        "ping": True,
        "named": [True, "me"],
        "server": "1.0-rc1",
        "limit": {"maxclients": "10000"},
        "set": True,
        "clients": True,
        "commands": len(standard_registry().table),
        "time": 2,
        "slow": True,
        "jobs": {
            "id": 40,
            "fetched": ["q", "the id", "body", *counters],
            "working": 10,
            "acked": 1,
            "gone": None,
            "nothing": None,
            "nodes": 3,
            "error": "timeout is negative",
        },
        "pipelined": {"ids": 100, "failed": "BADID Invalid Job ID format.", "length": 100},
        "blocking": "came",
    }


class PydisqueTests(DaemonTestCase):
    """All calls of pydisque, which uses the installed redis-py."""

    def setUp(self) -> None:
        """Connect a client. Logging is disabled, because the library logs every error reply three
        times."""
        logging.disable(logging.CRITICAL)
        self.addCleanup(logging.disable, logging.NOTSET)
        daemon = self.running()
        self.client = pydisque.client.Client([f"127.0.0.1:{daemon.port}"])
        self.client.connect()
        self.addCleanup(lambda: self.client.get_connection().close())

    def test_nodes(self) -> None:
        """The client knows the ID of the node it is connected to."""
        version, node_id, *nodes = self.client.hello()
        self.assertEqual((1, 1), (version, len(nodes)))
        self.assertEqual(node_id, self.client.connected_node.node_id)
        self.assertEqual("1.0-rc1", self.client.info()["disque_version"])

    def test_job(self) -> None:
        """A job can be added, fetched, returned and acknowledged."""
        job_id = self.client.add_job("q", "work", timeout=100, retry=10, ttl=100, maxlen=5)
        self.assertEqual([(b"q", job_id, b"work")], self.client.get_job(["q"]))
        self.assertEqual(10, self.client.working(job_id))
        self.client.nack_job(job_id)
        self.assertEqual(
            [(b"q", job_id, b"work", 1, 0)],
            self.client.get_job(["q"], timeout=1000, count=2, withcounters=True),
        )
        self.assertEqual(b"active", self.client.show(job_id, return_dict=True)[b"state"])
        self.client.ack_job(job_id)
        self.assertIsNone(self.client.show(job_id))
        self.assertEqual([], self.client.get_job(["q"], nohang=True))

    def test_options(self) -> None:
        """All options of ADDJOB that the library has are accepted."""
        late = self.client.add_job("q", "late", replicate=1, delay=50, asynchronous=True)
        self.assertEqual(50, self.client.show(late, return_dict=True)[b"delay"])
        with self.assertRaises(redis.ResponseError):
            self.client.add_job("q", "b", delay=100, ttl=100)

    def test_queues(self) -> None:
        """Queues can be inspected, and jobs moved in and out of them."""
        first, second = (self.client.add_job("q", body) for body in ("a", "b"))
        self.assertEqual(2, self.client.qlen("q"))
        self.assertEqual([[b"q", second, b"b"]], self.client.qpeek("q", -1))
        self.assertEqual(2, self.client.qstat("q", return_dict=True)[b"len"])
        self.assertEqual([b"0", [b"q"]], self.client.qscan(count=10, busyloop=True, minlen=1))
        cursor, ids = self.client.jscan(busyloop=True, queue="q", state=["queued"])
        self.assertEqual((b"0", {first, second}), (cursor, set(ids)))
        self.assertEqual(1, self.client.dequeue(first))
        self.assertEqual(1, self.client.enqueue(first))
        self.assertEqual(1, self.client.del_job(first))
        self.client.fast_ack(second)
        self.assertEqual(0, self.client.qlen("q"))

    def test_pause(self) -> None:
        """A paused queue refuses jobs with the error that the library expects."""
        self.assertEqual(b"in", self.client.pause("q", kw_in=True))
        with self.assertRaises(redis.ResponseError) as caught:
            self.client.add_job("q", "b")
        self.assertEqual("PAUSED Queue paused in input, try later", str(caught.exception))
        self.assertEqual(b"none", self.client.pause("q", kw_none=True))


class TxredisapiTests(DaemonTestCase, TestCase):
    """txredisapi in a program that uses Twisted."""

    @inlineCallbacks
    def test_jobs(self) -> Generator[Deferred[Any], Any, None]:
        """Jobs and errors work, and a request that waits for a job does not delay others."""
        daemon = self.running()
        connection = yield txredisapi.Connection("127.0.0.1", daemon.port, reconnect=False)
        waiting = yield txredisapi.Connection("127.0.0.1", daemon.port, reconnect=False)
        came = waiting.execute_command("GETJOB", "FROM", "later")
        self.assertEqual("PONG", (yield connection.ping()))
        job_id = yield connection.execute_command("ADDJOB", "q", "body", 0)
        jobs = yield connection.execute_command("GETJOB", "FROM", "q")
        self.assertEqual([["q", job_id, "body"]], jobs)
        self.assertEqual(1, (yield connection.execute_command("ACKJOB", job_id)))
        yield self.assertFailure(
            connection.execute_command("ADDJOB", "q", "body", -1), txredisapi.ResponseError
        )
        self.assertNoResult(came)
        later = yield connection.execute_command("ADDJOB", "later", "body", 0)
        self.assertEqual([["later", later, "body"]], (yield came))
        yield connection.disconnect()
        yield waiting.disconnect()

    @inlineCallbacks
    def test_password(self) -> Generator[Deferred[Any], Any, None]:
        """The library authenticates with AUTH."""
        daemon = self.running("requirepass secret")
        connection = yield txredisapi.Connection(
            "127.0.0.1", daemon.port, reconnect=False, password="secret"
        )
        self.assertEqual(0, (yield connection.execute_command("QLEN", "q")))
        yield connection.disconnect()
