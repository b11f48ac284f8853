"""The blocking client with real daemons."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import subprocess
import sys
import threading
from pathlib import Path
from typing import Final

from disque_tx import Disque
from disque_tx.client import (
    AuthenticationRefused,
    BadJobId,
    CannotConnect,
    NotEnoughReplicas,
    OutcomeUnknown,
    OutOfMemory,
    Paused,
    QueueFull,
    TooLate,
    UnknownJob,
)
from disque_tx.client.options import TLS
from tests.acceptance.cluster.fleet import Fleet
from tests.acceptance.daemon import Daemon, DaemonTestCase, environment, free_port, wait_for
from tests.services.net.certificates import Authority

_ROOT: Final = Path(__file__).resolve().parents[2]
_HOW_TO: Final = _ROOT / "docs" / "how-to" / "use-the-blocking-client.md"
_EXAMPLE: Final = re.compile(r"```python\n(.*?)```", re.DOTALL)
_UNKNOWN_ID: Final = "D-00000000-AAAAAAAAAAAAAAAAAAAAAAAA-05a1"


class OneNodeTests(DaemonTestCase):
    """One daemon and one client."""

    def client(self, daemon: Daemon, password: str | None = None, protocol: int = 2) -> Disque:
        """A client of this daemon."""
        client = Disque(
            f"127.0.0.1:{daemon.port}", password, protocol=protocol, timeout_s=5, patience_s=2
        )
        self.addCleanup(client.close)
        return client

    def test_life(self) -> None:
        """A job can be added, fetched and acknowledged, and all commands that show it work, with
        both versions of RESP."""
        daemon = self.running("requirepass secret")
        for protocol in (2, 3):
            client = self.client(daemon, "secret", protocol)
            queue = f"q{protocol}"
            job_id = client.add_job(queue, b"\0work", retry_s=60, ttl_s=600)
            stat, shown = client.queue_stat(queue), client.show(job_id)
            assert stat is not None and shown is not None
            self.assertEqual((queue, 1, "none"), (stat.name, stat.length, stat.pause))
            self.assertEqual((60, "queued", b"\0work"), (shown.retry_s, shown.state, shown.body))
            self.assertEqual([job_id], [job.id for job in client.queue_peek(queue)])
            self.assertEqual([job_id], [job.id for job in client.job_scan(queue)])
            self.assertEqual({queue}, set(client.queue_scan(minlen=1)))
            (job,) = client.get_jobs(queue, count=5, timeout_ms=1000)
            self.assertEqual((job_id, b"\0work", 0), (job.id, job.body, job.nacks))
            self.assertEqual((60, 1), (client.working(job_id), client.nack(job_id)))
            (job,) = client.get_jobs("none", queue)
            self.assertEqual((1, 1), (job.nacks, client.ack_jobs(job_id)))
            self.assertEqual([], client.get_jobs(queue, no_hang=True))
            self.assertIsNone(client.show(job_id))
            self.assertEqual(client.hello().id, client.cluster_my_id())
            self.assertEqual("1", client.cluster_info()["cluster_known_nodes"])
            self.assertEqual([client.cluster_my_id()], [node.id for node in client.cluster_nodes()])
            self.assertEqual("1.0-rc1", client.info("server")["disque_version"])

    def test_refusals(self) -> None:
        """Each reason why a job is refused or not found has its own exception."""
        client = self.client(self.running())
        client.add_job("q", "b")
        self.assertRaises(QueueFull, client.add_job, "q", "b", maxlen=1)
        self.assertEqual("in", client.pause("q", "in"))
        self.assertRaises(Paused, client.add_job, "q", "b")
        self.assertRaises(NotEnoughReplicas, client.add_job, "r", "b", replicate=2)
        self.assertRaises(UnknownJob, client.working, _UNKNOWN_ID)
        self.assertRaises(BadJobId, client.ack_jobs, "no id")
        late = client.add_job("late", "b", ttl_s=2, retry_s=60)
        wait_for(lambda: self.is_too_late(client, late), "half of the TTL is over")
        client.execute("CONFIG", "SET", "maxmemory-policy", "noeviction")
        client.execute("CONFIG", "SET", "maxmemory", "1mb")
        client.add_job("r", b"b" * 2_000_000)
        self.assertRaises(OutOfMemory, client.add_job, "r", "b")

    def is_too_late(self, client: Disque, job_id: str) -> bool:
        """Whether WORKING is refused because the job is too old."""
        try:
            client.working(job_id)
        except TooLate:
            return True
        return False

    def test_password(self) -> None:
        """A client without the right password can do nothing, and can authenticate later with
        AUTH."""
        client = self.client(self.running("requirepass secret"))
        self.assertRaises(AuthenticationRefused, client.queue_length, "q")
        self.assertRaises(AuthenticationRefused, client.auth, "wrong")
        client.auth("secret")
        self.assertEqual(0, client.queue_length("q"))

    def test_tls(self) -> None:
        """TLS works with the node's certificate checked; a certificate of an unknown authority is
        refused."""
        folder = self.folder()
        certificate, key = Authority(folder, "ca").issue("node")
        port = free_port()
        self.running(f"listen resp ssl:{port}:privateKey={key}:certKey={certificate}")
        trusting = TLS(ca_file=str(folder / "ca.pem"), check_hostname=False)
        with Disque(f"127.0.0.1:{port}", tls=trusting) as client:
            client.enqueue("q", "secret")
            self.assertEqual(1, client.queue_length("q"))
        strict = Disque(f"127.0.0.1:{port}", tls=True, patience_s=0)
        error = self.assertRaises(CannotConnect, strict.ping)
        self.assertIn("CERTIFICATE_VERIFY_FAILED", str(error))

    def test_restart(self) -> None:
        """A client reports that its node is down, and works again after the node's restart."""
        daemon = self.running("appendonly yes", "appendfsync always")
        client = self.client(daemon)
        job_id = client.enqueue("q", "kept")
        daemon.kill()
        self.assertRaises(CannotConnect, client.queue_length, "q")
        daemon.start()
        wait_for(lambda: client.show(job_id), "the job is loaded again")

    def test_threads(self) -> None:
        """Many threads can share one client, and each job is delivered to only one of them."""
        client = self.client(self.running())
        taken: list[bytes] = []

        def work() -> None:
            for job in client.queue("q", timeout=0.5):
                taken.append(job.data)
                job.ack()

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for number in range(200):
            client.enqueue("q", str(number))
        for thread in threads:
            thread.join()
        self.assertEqual({str(n).encode() for n in range(200)}, set(taken))
        self.assertEqual(200, len(taken))

    def test_older_library(self) -> None:
        """The client also works with the major version of redis-py before the installed one."""
        folder = os.environ.get("REDIS_PY_7", "")
        self.assertTrue(folder, "REDIS_PY_7 must name the folder with redis 7, see the Makefile")
        daemon = self.running("requirepass secret")
        program = (
            "import json, sys, redis; from disque_tx import Disque\n"
            "client = Disque(sys.argv[1], protocol=int(sys.argv[2]))\n"
            "client.enqueue('q', 'data')\n"
            "job = client.dequeue('q', timeout=5)\n"
            "print(json.dumps([redis.__version__[0], job.data.decode(), job.ack()]))\n"
        )
        paths = os.pathsep.join([folder, environment()["PYTHONPATH"]])
        for protocol in ("2", "3"):
            url = f"disque://:secret@127.0.0.1:{daemon.port}"
            done = subprocess.run(
                [sys.executable, "-c", program, url, protocol],
                env=environment() | {"PYTHONPATH": paths},
                capture_output=True,
                text=True,
                check=False,
            )
            self.assertEqual("", done.stderr)
            self.assertEqual(["7", "data", True], json.loads(done.stdout))

    def test_how_to(self) -> None:
        """The examples of the documentation can be run one after the other."""
        port = self.running().port
        names: dict[str, object] = {}
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            for program in _EXAMPLE.findall(_HOW_TO.read_text()):
                exec(program.replace("127.0.0.1:7711", f"127.0.0.1:{port}"), names)
        self.assertIn("sending to: bob", printed.getvalue())


class ClusterTests(DaemonTestCase):
    """Three nodes, some of which are killed while the client uses them."""

    def setUp(self) -> None:
        """Start a cluster for this test only, because it kills nodes."""
        self.fleet = Fleet(3)
        self.addCleanup(self.fleet.discard)
        self.fleet.start()
        self.nodes = self.fleet.nodes
        self.one = f"{self.nodes[0].ip}:{self.nodes[0].port}"
        self.connected = Disque(self.one, timeout_s=2)
        self.addCleanup(self.connected.close)

    def test_node_dies(self) -> None:
        """With one address given, the client finds the other nodes, and loses no job when its node
        dies."""
        client = self.connected
        added = []
        for number in range(60):
            if number == 20:
                self.nodes[0].kill()
            try:
                added.append(client.enqueue("q", str(number), retry=2))
            except (OutcomeUnknown, NotEnoughReplicas):
                self.assertIn(number, range(20, 60))
                wait_for(
                    lambda: self.replicated(client), "a job with two copies is accepted again", 30
                )
        taken = set()

        def all_taken() -> bool:
            for job in client.get_jobs("q", count=10, timeout_ms=500):
                taken.add(job.id)
                client.ack_jobs(job.id)
            return set(added) <= taken

        wait_for(all_taken, "all jobs that were accepted are delivered", 30)

    def replicated(self, client: Disque) -> bool:
        """Whether a job with two copies is accepted."""
        try:
            client.add_job("other", "b", replicate=2)
        except (OutcomeUnknown, NotEnoughReplicas):
            return False
        return True

    def test_dies_while_waiting(self) -> None:
        """A GETJOB that waits on a dying node continues on another one."""
        client = self.connected
        client.ping()
        dying = threading.Timer(0.3, self.nodes[0].kill)
        adding = threading.Timer(1.0, self.nodes[1].add, ("q", "late"), {"replicate": 1})
        for timer in (dying, adding):
            timer.start()
        job = client.dequeue("q", timeout=20)
        dying.join()
        adding.join()
        assert job is not None
        self.assertEqual((b"late", True), (job.data, job.ack() is not None))

    def test_leaving(self) -> None:
        """A client disconnects from a node that is leaving the cluster."""
        client = self.connected
        client.ping()
        self.nodes[0].call("CLUSTER", "LEAVING", "yes")
        self.nodes[1].add("q", "here", replicate=1)
        (job,) = client.get_jobs("q", timeout_ms=10_000)
        self.assertEqual(b"here", job.body)
        self.assertNotEqual(self.one, str(client.address()))

    def test_follows(self) -> None:
        """A consumer moves to the node where most of its jobs come from."""
        client = self.connected
        for number in range(150):
            self.nodes[2].add("q", str(number), replicate=1)
        got = 0
        while got < 150:
            jobs = client.get_jobs("q", count=50, timeout_ms=20_000)
            got += len(jobs)
            client.ack_jobs(*(job.id for job in jobs))
        self.assertEqual(f"{self.nodes[2].ip}:{self.nodes[2].port}", str(client.address()))

    def test_channels(self) -> None:
        """A subscription made at one node is used by other nodes, too, and survives the crash of
        its node."""
        client = self.connected
        client.subscribe("news", "mail")
        other = Disque(f"{self.nodes[1].ip}:{self.nodes[1].port}", timeout_s=2)
        self.addCleanup(other.close)
        published = other.publish("news", "first")
        self.assertEqual((["mail"], ()), (list(published.jobs), published.unseen))
        self.nodes[0].kill()
        again = wait_for(
            lambda: other.publish("news", "second", replicate=2).jobs,
            "the subscription is known again",
            40,
        )
        self.assertEqual(["mail"], list(again))
        self.assertTrue(other.unsubscribe("news", "mail"))
        wait_for(
            lambda: not other.publish("news", "third", replicate=1).jobs,
            "no node knows the subscription",
            40,
        )
