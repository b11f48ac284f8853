"""The work queue on Disque: its operations, and the move from Redis, killed at every step."""

from __future__ import annotations

import ast
import contextlib
import io
import os
import re
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any, Final

from twisted.internet import reactor
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.threads import deferToThread

from disque_tx.client import DisqueClient
from disque_tx.client.errors import ConnectionLost
from disque_tx.workqueue import Item, MoveRefused, NotOnDisque, RedisLost, WorkQueue
from disque_tx.workqueue.items import parse_job_body
from disque_tx.workqueue.mover import Mover
from disque_tx.workqueue.parking import Parking, parking_options
from tests.acceptance.cluster.fleet import Fleet
from tests.acceptance.daemon import Daemon, environment
from tests.acceptance.test_workqueue import RedisTestCase, Stopping, rest

_HOW_TO: Final = (
    Path(__file__).resolve().parents[2] / "docs" / "how-to" / "use-the-redis-work-queue.md"
)
_EXAMPLE: Final = re.compile(r"```python\n(.*?)```", re.DOTALL)
_COMMAND: Final = "from disque_tx.cli.verbs.workers.workqueue import command; command()"


class DisqueTestCase(RedisTestCase):
    """Starts a Redis server, a daemon, and clients for each test."""

    def setUp(self) -> None:
        super().setUp()
        folder = Path(self.mktemp()).resolve()
        folder.mkdir(parents=True)
        self.daemon = Daemon(folder)
        self.addCleanup(self.daemon.discard)
        self.daemon.start()
        self.client = self.node_client(f"127.0.0.1:{self.daemon.port}")

    def node_client(self, address: str) -> DisqueClient:
        """A client of one node only."""
        client = DisqueClient(address, reactor=reactor, discover=False, timeout_s=2)
        self.addCleanup(client.close)
        return client


class DisqueQueueTests(DisqueTestCase):
    """The operations that work on Disque, and those that do not."""

    def setUp(self) -> None:
        super().setUp()
        self.work = WorkQueue.on_disque(self.client, "q", retry_s=60)

    async def test_lease_and_complete(self) -> None:
        """An item keeps its ID and its bytes, and is completed once."""
        item = Item.create(b"\xff\x00 1.5", "über 7")
        await self.work.add_unique_item(item)
        self.assertEqual(1, await self.work.queue_len())
        leased = await self.work.lease(30)
        assert leased is not None
        self.assertEqual((item.id, item.data), (leased.id, leased.data))
        self.assertTrue(await self.work.extend_lease(leased))
        self.assertTrue(await self.work.complete(leased))
        self.assertFalse(await self.work.complete(leased))
        self.assertFalse(await self.work.extend_lease(leased))
        self.assertIsNone(await self.work.lease(block=False))
        self.assertIsNone(await self.work.lease(timeout_s=0.05))

    async def test_two_workers(self) -> None:
        """When two workers have received an item from the same node, only the first to complete it
        gets True."""
        await self.work.add_unique_item(Item.create("x"))
        slow = await self.work.lease()
        assert slow is not None
        self.assertTrue(await self.work.give_back(slow))
        quick = await self.work.lease()
        assert quick is not None
        completed = [await self.work.complete(quick), await self.work.complete(slow)]
        self.assertEqual([True, False], completed)

    async def test_jobs_of_others(self) -> None:
        """A job that another program added is leased as an item, with the job's ID."""
        job_id = await self.client.add_job("q", b"workqueue-item 5 a", retry_s=60)
        leased = await self.work.lease()
        assert leased is not None
        self.assertEqual((job_id, b"workqueue-item 5 a"), (leased.id, leased.data))

    async def test_cancelled(self) -> None:
        """A cancelled lease takes no item."""
        waiting = self.work.lease()
        await rest(0.1)
        waiting.cancel()
        await self.assertFailure(waiting, CancelledError)
        await self.work.add_unique_item(Item.create("x"))
        self.assertIsNotNone(await self.work.lease(timeout_s=5))

    async def test_item_once(self) -> None:
        """While an item is waiting or worked on, another one with its ID is not added."""
        for item_id in ("x", "y" * 1_000):
            item = Item("of-" + item_id, b"data")
            self.assertEqual(
                [True, False], [await self.work.add_item(item), await self.work.add_item(item)]
            )
            leased = await self.work.lease(timeout_s=5)
            assert leased is not None
            self.assertFalse(await self.work.add_item(item))
            await self.work.complete(leased)
            self.assertTrue(await self.work.add_item(item))
            leased = await self.work.lease(timeout_s=5)
            assert leased is not None
            await self.work.complete(leased)

    async def test_not_on_disque(self) -> None:
        """Operations that Disque cannot guarantee are refused with an error."""
        item = Item.create("x")
        refusals: tuple[Deferred[Any], ...] = (
            self.work.counts(),
            self.work.processing(),
            self.work.complete(item),
            self.work.lease(61),
            self.work.extend_lease(item, 61),
        )
        for refused in refusals:
            await self.assertFailure(refused, NotOnDisque)
        await self.assertFailure(self.work.lease(timeout_s=-1), ValueError)
        self.assertEqual((0, 0), (await self.work.light_clean(), await self.work.deep_clean()))


class StoppingParking(Parking):
    """Adds jobs for a program that is killed before or after step number ``left``."""

    left = 1000

    def _step(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise ConnectionLost("127.0.0.1", "the program was killed", False)

    async def park(self, item: Item) -> str:
        """Add the job; the program may be killed before or after it."""
        self._step()
        job_id = await super().park(item)
        self._step()
        return job_id

    async def release(self, job_id: str) -> None:
        """Release the job; the program may be killed before or after it."""
        self._step()
        await super().release(job_id)
        self._step()


class MoveTests(DisqueTestCase):
    """Every incomplete item becomes exactly one job."""

    def parking(self, kind: type[Parking] = Parking) -> Any:
        """Parking in the queue ``q`` of the daemon."""
        return kind(self.client, self.node_client, "q", parking_options(retry_s=60))

    async def jobs(self) -> Counter[str]:
        """The item IDs of all jobs that workers can fetch."""
        taken = Counter[str]()
        while jobs := await self.client.take("q", count=100, no_hang=True):
            for job in jobs:
                item = parse_job_body(job.data)
                assert item is not None
                self.assertEqual(b"data", item[1])
                taken[item[0]] += 1
                await job.ack()
        return taken

    async def test_all(self) -> None:
        """Items that wait, whose lease has expired, or that are in no list are moved; completed
        ones are not."""
        await self.queue.add_items(Item.create("data", f"{n}") for n in range(500))
        expired, completed = await self.queue.lease(0.01), await self.queue.lease(60)
        assert expired is not None and completed is not None
        await self.queue.complete(completed)
        await self.redis.execute("LREM", "P:queue", 0, "77")
        await rest(0.05)
        reports: list[tuple[int, int]] = []
        mover = Mover(
            self.queue,
            self.redis,
            self.parking(),
            progress=lambda moved, left: reports.append((moved, left)),
        )
        self.assertEqual(499, await mover.run())
        self.assertEqual((499, 0), reports[-1])
        self.assertEqual([], await self.keys())
        self.assertEqual(Counter(f"{n}" for n in range(500) if n != 1), await self.jobs())

    async def test_one_at_a_time(self) -> None:
        """A second move is refused while another one runs."""
        await self.redis.execute("SET", "P:mover", "another")
        await self.assertFailure(
            Mover(self.queue, self.redis, self.parking(), lock_s=0.1).run(), MoveRefused
        )

    async def test_lock_lost(self) -> None:
        """A move that was suspended for so long that it lost its lock releases no job."""
        await self.queue.add_item(Item.create("data", "1"))
        parking = self.parking()
        whole = parking.park

        async def slow(item: Item) -> str:
            await self.redis.execute("SET", "P:mover", "another")
            return str(await whole(item))

        parking.park = slow
        await self.assertFailure(Mover(self.queue, self.redis, parking).run(), MoveRefused)
        self.assertEqual(1, await self.redis.execute("EXISTS", "P:item:1"))

    async def test_killed_at_each_step(self) -> None:
        """When a move is killed at any command, the next one continues: no item is lost or
        duplicated."""
        names = Counter(["a", "b", "c"])
        for cut in range(8, 200):
            await self.redis.execute("FLUSHALL")
            await self.queue.add_items(Item.create("data", name) for name in names)
            stopping = Stopping(self.redis.address, reactor, 5)
            stopping.left = cut
            queue = WorkQueue("P", stopping, settle_s=0)
            mover = Mover(queue, stopping, self.parking(), at_a_time=1)
            killed = await self.is_killed(mover, stopping)
            await self.continue_move()
            self.assertEqual(names, await self.jobs(), f"killed before command {cut}")
            if not killed:
                return
        self.fail("the move takes too many commands")

    async def test_killed_at_disque(self) -> None:
        """The same when the move is killed before or after a job is added to Disque, or released
        there."""
        names = Counter(["a", "b", "c"])
        for cut in range(12):
            await self.queue.add_items(Item.create("data", name) for name in names)
            parking = self.parking(StoppingParking)
            parking.left = cut
            stopping = Stopping(self.redis.address, reactor, 5)
            stopping.left = 1000
            queue = WorkQueue("P", stopping)
            self.assertTrue(await self.is_killed(Mover(queue, stopping, parking), stopping))
            await self.continue_move()
            self.assertEqual(names, await self.jobs(), f"killed at step {cut}")

    async def is_killed(self, mover: Mover, redis: Stopping) -> bool:
        """Run the move to its end; returns whether it was killed."""
        try:
            await mover.run()
        except (RedisLost, ConnectionLost):
            return True
        finally:
            await redis.close()
        return False

    async def continue_move(self) -> None:
        """Start again, after the lock and the leases of the killed program have expired."""
        await self.redis.execute("DEL", "P:mover")
        for key in await self.keys():
            if b":lease" in key:
                await self.redis.execute("DEL", key)
        await Mover(self.queue, self.redis, self.parking()).run()
        self.assertEqual([], await self.keys())


class ClusterMoveTests(RedisTestCase):
    """A cluster of three nodes."""

    def setUp(self) -> None:
        super().setUp()
        self.fleet = Fleet(3)
        self.addCleanup(self.fleet.discard)
        self.fleet.start()

    def client(self, *addresses: str, discover: bool = True) -> DisqueClient:
        """A client that is closed at the end of the test."""
        client = DisqueClient(addresses, reactor=reactor, timeout_s=2, discover=discover)
        self.addCleanup(client.close)
        return client

    async def test_another_node(self) -> None:
        """A killed move can continue with another node, and finds the jobs it added on the first
        one."""
        names = Counter(f"{n}" for n in range(20))
        await self.queue.add_items(Item.create("data", name) for name in names)
        terms = parking_options(retry_s=60, replicate=1)
        for left, node in ((9, self.fleet.nodes[0]), (1000, self.fleet.nodes[1])):
            address = f"{node.ip}:{node.port}"
            parking = StoppingParking(
                self.client(address, discover=False),
                lambda address: self.client(address, discover=False),
                "q",
                terms,
            )
            parking.left = left
            try:
                await Mover(self.queue, self.redis, parking, lock_s=0.5).run()
            except ConnectionLost:
                self.assertNotEqual([], await self.redis.execute("HKEYS", "P:moving"))
        self.assertEqual([], await self.keys())
        taken = Counter[str]()
        taking = self.client(*(f"{node.ip}:{node.port}" for node in self.fleet.nodes))
        while taken.total() < 20:
            for job in await taking.take("q", count=20, timeout_s=10):
                taken[(parse_job_body(job.data) or ("", b""))[0]] += 1
                await job.ack()
        self.assertEqual(names, taken)


class HowToTests(DisqueTestCase):
    """The documentation of the work queue."""

    async def test_examples(self) -> None:
        """The examples can be run one after the other."""
        names: dict[str, Any] = {}
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            for program in _EXAMPLE.findall(_HOW_TO.read_text()):
                program = program.replace("127.0.0.1:6379", f"127.0.0.1:{self.server.port}")
                program = program.replace('"127.0.0.1", 6379', f'"127.0.0.1", {self.server.port}')
                program = program.replace("127.0.0.1:7711", f"127.0.0.1:{self.daemon.port}")
                code = compile(program, str(_HOW_TO), "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
                running = eval(code, names)
                if running is not None:
                    await running
        self.assertIn("done first", printed.getvalue())
        self.assertIn("b'scale dog.png' True", printed.getvalue())


class CommandTests(DisqueTestCase):
    """``disque workqueue``, run as users run it."""

    def start(self, *words: str, **variables: str) -> subprocess.Popen[str]:
        """Start the command in a process."""
        paths = os.pathsep.join([environment()["PYTHONPATH"], *filter(None, sys.path)])
        process = subprocess.Popen(
            [sys.executable, "-c", _COMMAND, *words],
            env=environment(**variables) | {"PYTHONPATH": paths},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        return process

    async def output(self, *words: str, **variables: str) -> tuple[int, str, str]:
        """Run the command; returns exit status, standard output and standard error."""
        process = self.start(*words, **variables)
        output, errors = await deferToThread(process.communicate)
        return process.returncode, output, errors

    async def test_counts_and_clean(self) -> None:
        """``counts`` prints the number of items, and ``clean`` returns those whose lease has
        expired."""
        await self.queue.add_items(Item.create("x", f"{n}") for n in range(3))
        await self.queue.lease(0.01)
        await rest(0.05)
        words = ("--prefix", "P", "--prefix", "Q", self.server.url)
        counted = await self.output("counts", *words)
        lines = "P: 2 waiting, 1 in processing\nQ: 0 waiting, 0 in processing\n"
        self.assertEqual((0, lines, ""), counted)
        cleaned = await self.output("clean", "--once", "--deep", *words)
        self.assertEqual((0, "P: 1 items returned\nQ: 0 items returned\n", ""), cleaned)

    async def test_clean_often(self) -> None:
        """``clean --every`` cleans repeatedly until it is stopped."""
        await self.queue.add_item(Item.create("x"))
        await self.queue.lease(0.01)
        process = self.start("clean", "--prefix", "P", "--every", "0.05", self.server.url)
        self.assertIsNotNone(await self.queue.lease(5, timeout_s=10))
        process.send_signal(signal.SIGTERM)
        await deferToThread(process.communicate)
        self.assertEqual(0, process.returncode)

    async def test_move_killed(self) -> None:
        """A move that is killed and started again moves every item once."""
        count = 3000
        await self.queue.add_items(Item.create("data", f"{n}") for n in range(count))
        words = ("move", "--prefix", "P", "--queue", "q", self.server.url)
        disque = f"disque://127.0.0.1:{self.daemon.port}"
        process = self.start(*words, disque)
        while await self.queue.queue_len() > count - 300:
            await rest(0.01)
        process.kill()
        status, output, errors = await self.output(*words, disque)
        self.assertEqual(0, status, errors)
        self.assertIn("items moved from P to the queue q", output)
        self.assertEqual([], await self.keys())
        self.assertEqual(count, await self.client.queue_length("q"))

    async def test_bad_input(self) -> None:
        """Errors are one line, with an exit status of 1 or 2, and never show a password."""
        gone = "redis://:secret@127.0.0.1:1"
        for status, text, words in (
            (2, "redis://", ("counts", "--prefix", "P", "http://secret@x")),
            (2, "empty", ("counts", "--prefix", "", self.server.url)),
            (2, "--once", ("clean", "--prefix", "P", self.server.url)),
            (1, "127.0.0.1:1", ("counts", "--prefix", "P", gone)),
            (1, "127.0.0.1:1", ("clean", "--prefix", "P", "--every", "1", gone)),
            (2, "disque://", ("move", "--prefix", "P", "--queue", "q", gone, "x")),
        ):
            found = await self.output(*words)
            self.assertEqual(status, found[0], found)
            self.assertIn(text, found[2])
            self.assertNotIn("secret", found[2])
        refused = await self.output(
            "counts", "--prefix", "P", self.server.url, REDIS_PASSWORD="secret"
        )
        self.assertEqual(1, refused[0])
        self.assertIn("password", refused[2])
