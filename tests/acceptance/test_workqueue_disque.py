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
_COMMAND: Final = "from disque_tx.cli.verbs.workqueue import command; command()"


class DisqueTestCase(RedisTestCase):
    """With a daemon, and a client of it, that end with the test."""

    def setUp(self) -> None:
        super().setUp()
        folder = Path(self.mktemp()).resolve()
        folder.mkdir(parents=True)
        self.daemon = Daemon(folder)
        self.addCleanup(self.daemon.discard)
        self.daemon.start()
        self.client = self.member(f"127.0.0.1:{self.daemon.port}")

    def member(self, address: str) -> DisqueClient:
        """A client of one node."""
        client = DisqueClient(address, reactor=reactor, discover=False, timeout_s=2)
        self.addCleanup(client.close)
        return client


class DisqueQueueTests(DisqueTestCase):
    """The operations that Disque has, and those it has not."""

    def setUp(self) -> None:
        super().setUp()
        self.work = WorkQueue.on_disque(self.client, "q", retry_s=60)

    async def test_worked_off(self) -> None:
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
        """Of two workers that got an item from the same node, one is told that it was first."""
        await self.work.add_unique_item(Item.create("x"))
        slow = await self.work.lease()
        assert slow is not None
        self.assertTrue(await self.work.give_back(slow))
        quick = await self.work.lease()
        assert quick is not None
        told = [await self.work.complete(quick), await self.work.complete(slow)]
        self.assertEqual([True, False], told)

    async def test_jobs_of_others(self) -> None:
        """A job that is no item's is one: its ID is the job's."""
        job_id = await self.client.add_job("q", b"workqueue-item 5 a", retry_s=60)
        leased = await self.work.lease()
        assert leased is not None
        self.assertEqual((job_id, b"workqueue-item 5 a"), (leased.id, leased.data))

    async def test_cancelled(self) -> None:
        """A wait that was cancelled takes no item."""
        waiting = self.work.lease()
        await rest(0.1)
        waiting.cancel()
        await self.assertFailure(waiting, CancelledError)
        await self.work.add_unique_item(Item.create("x"))
        self.assertIsNotNone(await self.work.lease(timeout_s=5))

    async def test_not_on_disque(self) -> None:
        """What Disque cannot promise is refused by name."""
        item = Item.create("x")
        refusals: tuple[Deferred[Any], ...] = (
            self.work.add_item(item),
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
    """Jobs of a program that is killed before or after step number ``left``."""

    left = 1000

    def _step(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise ConnectionLost("127.0.0.1", "the program was killed", False)

    async def park(self, item: Item) -> str:
        """Killed before, or after."""
        self._step()
        job_id = await super().park(item)
        self._step()
        return job_id

    async def release(self, job_id: str) -> None:
        """Killed before, or after."""
        self._step()
        await super().release(job_id)
        self._step()


class MoveTests(DisqueTestCase):
    """Every incomplete item becomes one job."""

    def parking(self, kind: type[Parking] = Parking) -> Any:
        """The queue ``q`` of the daemon."""
        return kind(self.client, self.member, "q", parking_options(retry_s=60))

    async def jobs(self) -> Counter[str]:
        """Item IDs of the jobs that workers get."""
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
        """Items that wait, that are given up, and that are lost are moved; completed ones not."""
        await self.queue.add_items(Item.create("data", f"{n}") for n in range(500))
        given_up, completed = await self.queue.lease(0.01), await self.queue.lease(60)
        assert given_up is not None and completed is not None
        await self.queue.complete(completed)
        await self.redis.execute("LREM", "P:queue", 0, "77")
        await rest(0.05)
        told: list[tuple[int, int]] = []
        mover = Mover(
            self.queue,
            self.redis,
            self.parking(),
            progress=lambda moved, left: told.append((moved, left)),
        )
        self.assertEqual(499, await mover.run())
        self.assertEqual((499, 0), told[-1])
        self.assertEqual([], await self.keys())
        self.assertEqual(Counter(f"{n}" for n in range(500) if n != 1), await self.jobs())

    async def test_one_at_a_time(self) -> None:
        """A second move does not begin while another one runs."""
        await self.redis.execute("SET", "P:mover", "another")
        await self.assertFailure(
            Mover(self.queue, self.redis, self.parking(), lock_s=0.1).run(), MoveRefused
        )

    async def test_lock_lost(self) -> None:
        """A move that stood still for too long hands nothing over any more."""
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
        """Wherever a move is killed, the next one goes on: nothing is lost, nothing doubled."""
        names = Counter(["a", "b", "c"])
        for cut in range(8, 200):
            await self.redis.execute("FLUSHALL")
            await self.queue.add_items(Item.create("data", name) for name in names)
            stopping = Stopping(self.redis.address, reactor, 5)
            stopping.left = cut
            queue = WorkQueue("P", stopping, settle_s=0)
            mover = Mover(queue, stopping, self.parking(), at_a_time=1)
            killed = await self.is_killed(mover, stopping)
            await self.go_on()
            self.assertEqual(names, await self.jobs(), f"killed before command {cut}")
            if not killed:
                return
        self.fail("it takes too many commands")

    async def test_killed_at_disque(self) -> None:
        """The same with the steps at Disque: before and after a job is added, and released."""
        names = Counter(["a", "b", "c"])
        for cut in range(12):
            await self.queue.add_items(Item.create("data", name) for name in names)
            parking = self.parking(StoppingParking)
            parking.left = cut
            stopping = Stopping(self.redis.address, reactor, 5)
            stopping.left = 1000
            queue = WorkQueue("P", stopping)
            self.assertTrue(await self.is_killed(Mover(queue, stopping, parking), stopping))
            await self.go_on()
            self.assertEqual(names, await self.jobs(), f"killed at step {cut}")

    async def is_killed(self, mover: Mover, redis: Stopping) -> bool:
        """Run until it ends, and whether it was killed."""
        try:
            await mover.run()
        except (RedisLost, ConnectionLost):
            return True
        finally:
            await redis.close()
        return False

    async def go_on(self) -> None:
        """Start again, when the lock and leases of the killed one are over."""
        await self.redis.execute("DEL", "P:mover")
        for key in await self.keys():
            if b":lease" in key:
                await self.redis.execute("DEL", key)
        await Mover(self.queue, self.redis, self.parking()).run()
        self.assertEqual([], await self.keys())


class ClusterMoveTests(RedisTestCase):
    """Three nodes."""

    def setUp(self) -> None:
        super().setUp()
        self.fleet = Fleet(3)
        self.addCleanup(self.fleet.discard)
        self.fleet.start()

    def client(self, *addresses: str, discover: bool = True) -> DisqueClient:
        """A client that ends with the test."""
        client = DisqueClient(addresses, reactor=reactor, timeout_s=2, discover=discover)
        self.addCleanup(client.close)
        return client

    async def test_another_node(self) -> None:
        """A move that was killed goes on at another node, and finds the jobs of the first."""
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
    """The documentation."""

    async def test_examples(self) -> None:
        """The examples run, one after the other."""
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
    """``disque workqueue``, as people run it."""

    def start(self, *words: str, **variables: str) -> subprocess.Popen[str]:
        """The command, in a process."""
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
        """Exit status, standard output and standard error of the command."""
        process = self.start(*words, **variables)
        output, errors = await deferToThread(process.communicate)
        return process.returncode, output, errors

    async def test_counts_and_clean(self) -> None:
        """What is there is counted, and what was given up returned."""
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
        """It cleans until it is told to end."""
        await self.queue.add_item(Item.create("x"))
        await self.queue.lease(0.01)
        process = self.start("clean", "--prefix", "P", "--every", "0.05", self.server.url)
        self.assertIsNotNone(await self.queue.lease(5, timeout_s=10))
        process.send_signal(signal.SIGTERM)
        await deferToThread(process.communicate)
        self.assertEqual(0, process.returncode)

    async def test_move_killed(self) -> None:
        """A move that is killed and started again moves everything once."""
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
        """What cannot work is said in a line, with an exit status of 1 or 2, and no password."""
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
