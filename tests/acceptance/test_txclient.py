"""The Twisted client with real daemons, on the real reactor."""

from __future__ import annotations

import contextlib
import inspect
import io
import re
from pathlib import Path
from typing import Any, Final

import txredisapi
from twisted.internet import reactor
from twisted.internet.defer import CancelledError, Deferred, gatherResults
from twisted.internet.task import deferLater
from twisted.internet.threads import deferToThread
from twisted.trial.unittest import TestCase

from disque_tx.client import (
    TLS,
    AuthenticationRefused,
    BadJobId,
    CannotConnect,
    DisqueClient,
    NotEnoughReplicas,
    Paused,
    QueueFull,
    UnknownJob,
)
from tests.acceptance.daemon import Daemon, free_port
from tests.services.net.certificates import Authority

_ROOT: Final = Path(__file__).resolve().parents[2]
_HOW_TO: Final = _ROOT / "docs" / "how-to" / "use-the-twisted-client.md"
_EXAMPLE: Final = re.compile(r"```python\n(.*?)```", re.DOTALL)
_UNKNOWN_ID: Final = "D-00000000-AAAAAAAAAAAAAAAAAAAAAAAA-05a1"


class TwistedClientTests(TestCase):
    """One daemon and one client."""

    timeout = 60

    def folder(self) -> Path:
        """A new and empty folder."""
        path = Path(self.mktemp()).resolve()
        path.mkdir(parents=True)
        return path

    def running(self, *directives: str) -> Deferred[Daemon]:
        """A daemon that serves clients; it is killed at the end of the test."""
        daemon = Daemon(self.folder(), *directives)
        self.addCleanup(daemon.discard)
        return deferToThread(daemon.start)

    def client(self, port: int, *arguments: Any, **options: Any) -> DisqueClient:
        """A client that is closed after the test; anything it leaves on the reactor fails the
        test."""
        client = DisqueClient(f"127.0.0.1:{port}", *arguments, **options)
        self.addCleanup(client.close)
        return client

    async def use_jobs(self, client: DisqueClient, queue: str) -> None:
        """Add, inspect, fetch and acknowledge a job."""
        job_id = await client.add_job(queue, b"\0work", retry_s=60, ttl_s=600)
        stat, shown = await client.queue_stat(queue), await client.show(job_id)
        assert stat is not None and shown is not None
        self.assertEqual((queue, 1, "none"), (stat.name, stat.length, stat.pause))
        self.assertEqual((60, "queued", b"\0work"), (shown.retry_s, shown.state, shown.body))
        self.assertEqual([job_id], [job.id for job in await client.queue_peek(queue)])
        self.assertEqual([job_id], [job.id async for job in client.job_scan(queue)])
        self.assertIn(queue, [name async for name in client.queue_scan(minlen=1)])
        (taken,) = await client.take(queue, count=5, timeout_s=1)
        self.assertEqual((job_id, b"\0work"), (taken.id, taken.data))
        self.assertEqual((60, True), (await taken.working(), await taken.nack()))
        (job,) = await client.get_jobs("none", queue)
        self.assertEqual((1, 1), (job.nacks, await client.ack_jobs(job_id)))
        self.assertEqual([], await client.get_jobs(queue, no_hang=True))
        self.assertIsNone(await client.dequeue(queue, timeout=0.1))
        self.assertIsNone(await client.show(job_id))

    async def use_other_commands(self, client: DisqueClient) -> None:
        """Run the other commands."""
        job_id = await client.enqueue("other", "b", delay=60)
        self.assertEqual(1, await client.enqueue_jobs(job_id))
        self.assertEqual(1, await client.dequeue_jobs(job_id))
        self.assertEqual(0, await client.queue_length("other"))
        self.assertEqual(1, await client.delete_jobs(job_id))
        self.assertEqual(1, await client.fast_ack(await client.enqueue("other", "b")))
        self.assertEqual("PONG", await client.ping())
        own_id = await client.cluster_my_id()
        self.assertEqual(own_id, (await client.hello()).id)
        self.assertEqual("1", (await client.cluster_info())["cluster_known_nodes"])
        self.assertEqual([own_id], [node.id for node in await client.cluster_nodes()])
        self.assertEqual("1.0-rc1", (await client.info("server"))["disque_version"])
        self.assertTrue(await client.cluster_leaving(True))
        self.assertFalse(await client.cluster_leaving(False))
        await client.cluster_save_config()
        self.assertEqual([b"maxclients"], (await client.execute("CONFIG", "GET", "maxclients"))[:1])

    async def test_life(self) -> None:
        """Every command works, with both parsers of txredisapi."""
        daemon = await self.running("requirepass secret")
        await self.use_jobs(self.client(daemon.port, "secret"), "fast")
        await self.use_other_commands(self.client(daemon.port, "secret"))
        self.patch(txredisapi, "hiredis", None)
        await self.use_jobs(self.client(daemon.port, "secret"), "plain")

    async def test_refusals(self) -> None:
        """Each reason why a job is refused or not found has its own exception."""
        client = self.client((await self.running()).port)
        await client.add_job("q", "b")
        await self.assertFailure(client.add_job("q", "b", maxlen=1), QueueFull)
        self.assertEqual("in", await client.pause("q", "in"))
        await self.assertFailure(client.add_job("q", "b"), Paused)
        await self.assertFailure(client.add_job("r", "b", replicate=2), NotEnoughReplicas)
        await self.assertFailure(client.working(_UNKNOWN_ID), UnknownJob)
        await self.assertFailure(client.ack_jobs("no id"), BadJobId)

    async def test_password(self) -> None:
        """A client without the right password can do nothing, and can authenticate later with
        AUTH."""
        client = self.client((await self.running("requirepass secret")).port)
        await self.assertFailure(client.queue_length("q"), AuthenticationRefused)
        await self.assertFailure(client.auth("wrong"), AuthenticationRefused)
        await client.auth("secret")
        self.assertEqual(0, await client.queue_length("q"))

    async def test_tls(self) -> None:
        """TLS works with the node's certificate checked; a certificate of an unknown authority is
        refused."""
        folder, port = self.folder(), free_port()
        certificate, key = Authority(folder, "ca").issue("node")
        await self.running(f"listen resp ssl:{port}:privateKey={key}:certKey={certificate}")
        trusted = str(folder / "ca.pem")
        client = self.client(port, tls=TLS(ca_file=trusted, check_hostname=False))
        await self.use_jobs(client, "q")
        taking = client.take("q")
        await deferLater(reactor, 0.1)
        taking.cancel()
        await self.assertFailure(taking, CancelledError)
        self.assertEqual(0, await client.queue_length("q"))
        await self.use_jobs(self.client(port, tls=TLS(verify=False)), "unchecked")
        own = TLS(trusted, certificate, key, check_hostname=False)
        self.assertEqual("PONG", await self.client(port, tls=own).ping())
        refused = {
            "certificate verify failed": TLS(),
            "certificate verify": TLS(ca_file=trusted),
            "no certificate": TLS(ca_file=key),
            "No such file": TLS(ca_file=str(folder / "none")),
            "cannot be used": TLS(trusted, certificate, trusted, check_hostname=False),
        }
        for words, options in refused.items():
            failing = self.client(port, tls=options, patience_s=0)
            error = await self.assertFailure(failing.ping(), CannotConnect)
            self.assertIn(words, str(error))

    async def test_cancelled_wait(self) -> None:
        """A node does not deliver to a client that has cancelled its request; the next client
        receives the job."""
        client = self.client((await self.running()).port)
        for _ in range(10):
            taking = client.take("q")
            await deferLater(reactor, 0.02)
            taking.cancel()
            await self.assertFailure(taking, CancelledError)
        await client.enqueue("q", "b")
        (job,) = await client.take("q", timeout_s=5)
        self.assertEqual((b"b", True), (job.data, await job.ack()))
        self.assertEqual("0", (await client.info("clients"))["blocked_clients"])

    async def test_cancelled_race(self) -> None:
        """Whenever a request is cancelled, its job is either delivered or returned to the queue."""
        client = self.client((await self.running()).port)
        for turn in range(200):
            taking = client.take("q")
            await deferLater(reactor, 0.005)
            adding = client.enqueue("q", str(turn))
            await deferLater(reactor, turn % 50 * 0.00002)
            taking.cancel()
            await adding
            try:
                jobs = await taking
            except CancelledError:
                # This limit is far below the RETRY of 300 s after which a lost job would be
                # delivered again.
                jobs = await client.take("q", timeout_s=60)
            self.assertEqual([str(turn).encode()], [job.data for job in jobs])
            await client.ack_taken(jobs)

    async def test_many(self) -> None:
        """Many workers and producers can share one client, and each job is processed once."""
        client = self.client((await self.running()).port, connections_max=5)
        done: list[bytes] = []

        async def work() -> None:
            async for job in client.jobs("q", timeout_s=1):
                done.append(job.data)
                await job.ack()

        workers = [Deferred.fromCoroutine(work()) for _ in range(20)]
        await gatherResults([client.enqueue("q", str(number)) for number in range(500)])
        await gatherResults(workers)
        self.assertEqual(sorted(str(n).encode() for n in range(500)), sorted(done))

    async def test_restart(self) -> None:
        """A client reports that its node is down, and works again after the node's restart."""
        daemon = await self.running("appendonly yes", "appendfsync always")
        client = self.client(daemon.port, patience_s=1)
        job_id = await client.enqueue("q", "kept")
        daemon.kill()
        await self.assertFailure(client.queue_length("q"), CannotConnect)
        await deferToThread(daemon.start)
        shown = await client.show(job_id)
        self.assertEqual(b"kept", shown and shown.body)

    async def test_name(self) -> None:
        """A node may be given by its name; a malformed name is treated as an address that
        failed."""
        nowhere = DisqueClient("a..b:1", patience_s=0)
        await self.assertFailure(nowhere.ping(), CannotConnect)
        daemon = await self.running()
        client = DisqueClient(f"localhost:{daemon.port}")
        self.addCleanup(client.close)
        self.assertEqual("PONG", await client.ping())

    async def test_how_to(self) -> None:
        """The examples of the documentation can be run one after the other."""
        daemon = await self.running()
        names: dict[str, Any] = {}
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            for program in _EXAMPLE.findall(_HOW_TO.read_text()):
                known = set(names)
                exec(program.replace("127.0.0.1:7711", f"127.0.0.1:{daemon.port}"), names)
                for name in sorted(set(names) - known):
                    if inspect.iscoroutinefunction(names[name]):
                        await names[name](reactor)
        for words in ("sending to: carol", "1 queued", "1000 done", "gave up", "archive"):
            self.assertIn(words, printed.getvalue())
