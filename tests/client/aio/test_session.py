"""Failover of the asyncio client, and requests that must not be repeated."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from disque_tx.client import (
    AuthenticationRefused,
    BadAddress,
    BadJobId,
    BrokenReply,
    CannotConnect,
    ClientError,
    Leaving,
    OutcomeUnknown,
    ScanInterrupted,
)
from disque_tx.client.aio import Disque, session
from disque_tx.client.values import Job
from tests.client.blocking.test_session import ADDED, LEAVING, PONG
from tests.client.lookups import NAME, Lookups
from tests.client.scripted import (
    EVERY_OPTION,
    EVERY_WORD,
    HANG_UP,
    JOB_ID,
    NO_ANSWER,
    NODE_IDS,
    ScriptedNode,
    ScriptedTestCase,
    array,
    bulk,
    job,
)
from tests.recordedspans import Spans, recording

_T = TypeVar("_T")
_NIL = b"*-1\r\n"


class AsyncTestCase(ScriptedTestCase):
    """Runs coroutines that use a client of scripted nodes."""

    def run_client(
        self,
        use: Callable[[Disque], Awaitable[_T]],
        *nodes: ScriptedNode,
        patience_s: float = 20.0,
        **options: Any,
    ) -> _T:
        """The result of a coroutine with a client, which is closed after it."""

        async def run() -> _T:
            addresses = [node.address for node in nodes]
            async with Disque(addresses, patience_s=patience_s, **options) as client:
                return await use(client)

        return asyncio.run(run())

    def run_traced(self, use: Callable[[Disque], Awaitable[_T]], *nodes: ScriptedNode) -> Spans:
        """The spans of a coroutine with a client, whatever becomes of it."""
        spans = recording(self)
        with contextlib.suppress(ClientError):
            self.run_client(use, *nodes, patience_s=0)
        return spans

    def wait_until(self, condition: Callable[[], bool]) -> Awaitable[None]:
        """Until something that another thread does has happened."""

        async def wait() -> None:
            while not condition():
                await asyncio.sleep(0)

        return wait()


class ConnectingTests(AsyncTestCase):
    """How a client finds a node."""

    def test_no_node(self) -> None:
        """The error lists each node with the reason."""
        gone = self.node()
        gone.close()
        error = self.assertRaises(
            CannotConnect, self.run_client, lambda client: client.ping(), gone, patience_s=0
        )
        self.assertEqual({gone.address}, set(error.tried))
        self.assertIn(gone.address, str(error))

    def test_one_of_many(self) -> None:
        """One reachable address is enough."""
        gone = self.node()
        gone.close()
        node = self.node(PING=PONG)
        self.assertEqual("PONG", self.run_client(lambda client: client.ping(), gone, node))

    def test_not_disque(self) -> None:
        """A server with another reply to HELLO is not used."""
        other = self.node(HELLO=b"+server\r\n")
        self.assertRaises(
            CannotConnect, self.run_client, lambda client: client.ping(), other, patience_s=0
        )

    def test_password(self) -> None:
        """A wrong password is reported at once, and does not appear in the text."""
        node = self.node(AUTH=b"-ERR invalid password\r\n")
        error = self.assertRaises(
            AuthenticationRefused,
            self.run_client,
            lambda client: client.ping(),
            node,
            password="hunter2",
        )
        self.assertNotIn("hunter2", str(error))
        self.assertEqual([[b"AUTH", b"hunter2"]], node.requests)

    def test_auth(self) -> None:
        """A password is used from now on, and a wrong one is reported at once."""
        node = self.node(AUTH=[b"+OK\r\n", b"-ERR invalid password\r\n"], PING=PONG)

        async def use(client: Disque) -> None:
            await client.ping()
            await client.auth("right")
            self.assertEqual(["PING", "AUTH", "PING"], node.commands())
            await client.auth("wrong")

        self.assertRaises(AuthenticationRefused, self.run_client, use, node)

    def test_bad_address(self) -> None:
        """A mistake in an address is found before anything is sent."""
        self.assertRaises(BadAddress, Disque, "host:0")

    def test_shared(self) -> None:
        """Requests that are made together need one connection, and get their own replies."""
        node = self.node(QLEN=[b":%d\r\n" % at for at in range(100)])

        async def many(client: Disque) -> list[int]:
            return await asyncio.gather(*[client.queue_length("q") for _ in range(100)])

        self.assertEqual(list(range(100)), self.run_client(many, node))
        self.assertEqual(1, node.connections)


class NameTests(AsyncTestCase):
    """A name stands for the nodes of a cluster."""

    def test_moved(self) -> None:
        """The client waits until the name gives an address, and finds nodes at new addresses by
        it."""
        before, after = self.node(PING=PONG), self.node(NODE_IDS[1], PING=PONG)
        lookups = Lookups()
        self.patch(session, "resolve", lookups)

        async def use() -> None:
            async with Disque([NAME]) as client:
                waiting = asyncio.ensure_future(client.ping())
                while not lookups.count:
                    await asyncio.sleep(0)
                lookups.listed = [before.address]
                await waiting
                before.close()
                lookups.listed = [after.address]
                await client.ping()
                self.assertEqual(after.address, str(await client.address()))

        asyncio.run(use())

    def test_unknown(self) -> None:
        """A name that gives no address for ``patience_s`` is an error with the reason."""
        self.patch(session, "resolve", Lookups())

        async def use() -> None:
            async with Disque([NAME], patience_s=0) as client:
                await client.ping()

        error = self.assertRaises(CannotConnect, asyncio.run, use())
        self.assertEqual({NAME: "there is no such name"}, error.tried)


class FailoverTests(AsyncTestCase):
    """A node that serves no longer."""

    def test_repeated(self) -> None:
        """A request that may be executed twice goes to another node when its node dies."""
        first, second = self.cluster(2, PING=PONG)
        first.answer("QLEN", HANG_UP)
        second.answer("QLEN", b":7\r\n")
        found = self.run_client(lambda client: client.queue_length("q"), first)
        self.assertEqual(7, found)

    def test_not_repeated(self) -> None:
        """A job whose answer was lost is not added again: there might be two of it then."""
        first, second = self.cluster(2, ADDJOB=HANG_UP)
        error = self.assertRaises(
            OutcomeUnknown, self.run_client, lambda client: client.add_job("q", "b"), first, second
        )
        self.assertEqual("ADDJOB", error.command)
        self.assertEqual(1, len(first.requests) + len(second.requests))

    def test_of_its_node(self) -> None:
        """A request about a job that was delivered goes to another node when that one is gone. One
        that must not be repeated does so only if it was not sent; else its outcome is not known."""

        async def use(client: Disque) -> list[object]:
            (taken,) = await client.take("q")
            first.hang_up()
            found: list[object] = []
            for call in (taken.working, taken.nack):
                first.answer("WORKING", HANG_UP)
                first.answer("NACK", HANG_UP)
                try:
                    found.append(await call())
                except OutcomeUnknown:
                    found.append("unknown")
            first.close()
            found += [await taken.working(), await taken.nack()]
            return found

        first, second = self.cluster(2, WORKING=b":5\r\n", NACK=b":1\r\n")
        first.answer("GETJOB", array(job()))
        self.assertEqual([5, "unknown", 5, True], self.run_client(use, first))
        self.assertEqual(["WORKING", "WORKING", "NACK"], second.commands())

    def test_leaving(self) -> None:
        """A job that a leaving node refuses is added at another one."""
        first, second = self.cluster(2, ADDJOB=ADDED)
        first.answer("ADDJOB", LEAVING)
        made = self.run_client(lambda client: client.add_job("q", "b"), first)
        self.assertEqual(JOB_ID, made)
        self.assertEqual(["ADDJOB"], second.commands())

    def test_leaving_alone(self) -> None:
        """If there is no other node, the refusal is the error."""
        node = self.node(ADDJOB=LEAVING)
        self.assertRaises(
            Leaving, self.run_client, lambda client: client.add_job("q", "b"), node, patience_s=0
        )

    def test_silent(self) -> None:
        """A node that does not answer in time is given up."""
        first, second = self.cluster(2, PING=PONG)
        first.answer("PING", NO_ANSWER)
        self.assertEqual(
            "PONG", self.run_client(lambda client: client.ping(), first, timeout_s=0.05)
        )
        self.assertEqual(["PING"], second.commands())

    def test_error_of_one(self) -> None:
        """An error reply belongs to its request; the connection serves the others."""
        node = self.node(WORKING=b"-BADID no\r\n", PING=PONG)

        async def both(client: Disque) -> list[Any]:
            sent = client.working("x"), client.ping()
            return list(await asyncio.gather(*sent, return_exceptions=True))

        refused, pong = self.run_client(both, node)
        self.assertIsInstance(refused, BadJobId)
        self.assertEqual("PONG", pong)
        self.assertEqual(1, node.connections)

    def test_malformed(self) -> None:
        """A reply that the command cannot have is an error, and nothing after it is believed."""
        for reply in (b":1\r\n", b"?what\r\n"):
            node = self.node(ADDJOB=reply)
            with self.assertRaises(BrokenReply) as raised:
                self.run_client(lambda client: client.add_job("q", "b"), node)
            self.assertIn(f"The answer of {node.address} to ADDJOB is not", str(raised.exception))

    def test_interrupted_scan(self) -> None:
        """A listing whose node dies cannot go on at another one."""
        node = self.node(QSCAN=[array(bulk("5"), array(bulk("a"))), HANG_UP])

        async def scan(client: Disque) -> list[str]:
            return [name async for name in client.queue_scan()]

        self.assertRaises(ScanInterrupted, self.run_client, scan, node)


class JobTests(AsyncTestCase):
    """Jobs in and out."""

    def test_words(self) -> None:
        """ADDJOB sends all options."""
        node = self.node(ADDJOB=ADDED)
        made = self.run_client(lambda client: client.add_job("q", b"b", **EVERY_OPTION), node)
        self.assertEqual(JOB_ID, made)
        words = b" ".join(node.requests[-1]).decode()
        self.assertEqual(f"ADDJOB q b {EVERY_WORD}", words)

    def test_many_waiting(self) -> None:
        """Requests that wait do not hold up others."""
        node = self.node(ADDJOB=NO_ANSWER, PING=PONG)

        async def use(client: Disque) -> str:
            adding = asyncio.ensure_future(client.add_job("q", "b"))
            await self.wait_until(lambda: "ADDJOB" in node.commands())
            answer = await client.ping()
            adding.cancel()
            return answer

        self.assertEqual("PONG", self.run_client(use, node))

    def test_waiting_bounded(self) -> None:
        """No more requests wait at nodes than there may be connections for."""
        node = self.node(ADDJOB=ADDED)

        async def use(client: Disque) -> list[str]:
            return await asyncio.gather(*[client.add_job("q", "b") for _ in range(20)])

        self.assertEqual([JOB_ID] * 20, self.run_client(use, node, connections_max=3))
        self.assertLessEqual(node.connections, 1 + 3)

    def test_take(self) -> None:
        """A job that is taken is acknowledged, given back and renewed at its node."""
        node = self.node(GETJOB=array(job()), ACKJOB=b":1\r\n", NACK=b":0\r\n", WORKING=b":300\r\n")

        async def use(client: Disque) -> tuple[bytes, bool, bool, int]:
            taken = await client.dequeue("q")
            assert taken is not None
            return taken.data, await taken.ack(), await taken.nack(), await taken.working()

        self.assertEqual((b"body", True, False, 300), self.run_client(use, node))

    def test_wait(self) -> None:
        """A client first asks without waiting, and then waits on another connection."""
        node = self.node(GETJOB=[_NIL, array(job())])
        found = self.run_client(lambda client: client.get_jobs("q", timeout_ms=5000), node)
        self.assertEqual([Job("q", JOB_ID, b"body", 1, 2)], found)
        self.assertEqual([b"NOHANG", b"TIMEOUT"], [words[4] for words in node.requests])
        self.assertEqual(2, node.connections)

    def test_in_order(self) -> None:
        """Jobs of the first queue come before those of the others, however many there are."""
        node = self.node(GETJOB=[array(job()), array(job()), array(job()), _NIL])
        taking = self.run_client(lambda client: client.take_in_order("a", "b", count=9), node)
        self.assertEqual(3, len(taking))
        counts = [words[words.index(b"COUNT") + 1] for words in node.requests]
        self.assertEqual({b"1"}, set(counts))
        both = self.node(GETJOB=array(job(), job()))
        taking = self.run_client(lambda client: client.take_in_order("a", count=2), both)
        self.assertEqual(2, len(taking))

    def test_nothing(self) -> None:
        """A queue that stays empty gives nothing."""
        node = self.node(GETJOB=_NIL)
        self.assertEqual(
            [], self.run_client(lambda client: client.get_jobs("q", no_hang=True), node)
        )
        self.assertIsNone(self.run_client(lambda client: client.dequeue("q", 0), node))

    def test_iterate(self) -> None:
        """``async for`` gives the jobs of a queue until none came in time."""
        node = self.node(GETJOB=[array(job()), array(job()), _NIL])

        async def use(client: Disque) -> int:
            return len([taken async for taken in client.jobs("q", 0)])

        self.assertEqual(2, self.run_client(use, node))

    def test_cancelled(self) -> None:
        """A cancelled wait ends at the node, too, and a later one gets its jobs."""
        node = self.node(GETJOB=[_NIL, NO_ANSWER, array(job())])

        async def use(client: Disque) -> list[Job]:
            waiting = asyncio.ensure_future(client.get_jobs("q"))
            await self.wait_until(lambda: len(node.requests) == 2)
            waiting.cancel()
            await asyncio.wait([waiting])
            return await client.get_jobs("q")

        self.assertEqual(1, len(self.run_client(use, node, timeout_s=0.05)))

    def test_channels(self) -> None:
        """Operations of several requests work as in the other clients."""
        node = self.node(QPEEK=_NIL, ADDJOB=ADDED)
        self.run_client(lambda client: client.subscribe("news", "mine"), node)
        self.assertIn(b"disque:channel:news", [words[1] for words in node.requests])

    def test_show_many(self) -> None:
        """Many jobs are looked at in one round trip, in order."""
        node = self.node(NODE_IDS[0], SHOW=b"*-1\r\n")
        found = self.run_client(lambda client: client.show_jobs(*[JOB_ID] * 5), node)
        self.assertEqual([None] * 5, found)


class TracedTests(AsyncTestCase):
    """Requests of a program whose traces are recorded."""

    def test_spans(self) -> None:
        """Who follows a trace sees that a job was added, or why it was not; no span stays open."""
        for reply, failed in ((ADDED, False), (b"-OOM no memory\r\n", True)):
            node = self.node(ADDJOB=reply)
            spans = self.run_traced(lambda client: client.add_job("q", "b"), node)
            (span,) = spans.finished()
            self.assertEqual(failed, span.status.status_code.name == "ERROR")


class NearTests(AsyncTestCase):
    """Requests that belong to the node that delivered a job."""

    def test_moved(self) -> None:
        """When that node is gone another one acknowledges the job, and its answer is the one that
        counts."""
        nodes = self.cluster(2, ACKJOB=b":1\r\n", GETJOB=array(job()))

        async def use(client: Disque) -> int:
            taken = await client.dequeue("q")
            assert taken is not None
            nodes[0].close()
            return await taken.ack()

        self.assertEqual(1, self.run_client(use, nodes[0]))
        self.assertEqual(["ACKJOB"], nodes[1].commands())
