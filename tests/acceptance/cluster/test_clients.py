"""Both clients on a cluster whose nodes are killed one after the other."""

from __future__ import annotations

import time
from typing import Any

from twisted.internet import reactor
from twisted.internet.defer import Deferred, gatherResults
from twisted.internet.task import deferLater
from twisted.internet.threads import deferToThread
from twisted.trial.unittest import TestCase

from disque_tx import Disque
from disque_tx.client import ClientError, DisqueClient
from tests.acceptance.cluster.fleet import Fleet

_DOWN_S = 1.0
_UP_S = 2.0
_DRAIN_S = 120.0
_PAUSE_S = 0.005


class Ledger:
    """The jobs accepted and delivered, and the errors of the clients. ``adding``: requests to add a
    job that are not answered yet."""

    def __init__(self) -> None:
        self.accepted: set[str] = set()
        self.delivered: set[str] = set()
        self.errors: list[ClientError] = []
        self.is_over = False
        self.adding = 0
        self._deadline_s = 0.0

    def finish(self) -> None:
        """Stop adding jobs; the rest is to be delivered soon."""
        self._deadline_s = time.monotonic() + _DRAIN_S
        self.is_over = True

    def is_open(self) -> bool:
        """Whether consumers have something to do."""
        if not self.is_over or self.adding:
            return True
        return not self.accepted <= self.delivered and time.monotonic() < self._deadline_s


class KillingTests(TestCase):
    """Each job may be delivered twice, and must be delivered once; each failure raises a documented
    error."""

    timeout = 600

    def setUp(self) -> Deferred[Any]:  # type: ignore[override]
        """Start three nodes that write to disk before they reply."""
        self.fleet = Fleet(3, "appendonly yes", "appendfsync always")
        self.addCleanup(self.fleet.discard)
        self.addresses = [f"{node.ip}:{node.port}" for node in self.fleet.nodes]
        return deferToThread(self.fleet.start)

    def kill_each(self, *ledgers: Ledger) -> None:
        """Kill the nodes in turn, and restart each before the next is killed."""
        for node in self.fleet.nodes:
            time.sleep(_UP_S)
            node.kill()
            time.sleep(_DOWN_S)
            node.boot()
        self.fleet.wait_until_agreed()
        for ledger in ledgers:
            ledger.finish()

    # -- the blocking client -----------------------------------------------------------------

    def produce(self, client: Disque, ledger: Ledger) -> None:
        """Add jobs until the ledger is finished."""
        while not ledger.is_over:
            ledger.adding += 1
            try:
                ledger.accepted.add(
                    client.add_job("blocking", "b", 2000, replicate=2, retry_s=2, ttl_s=600)
                )
            except ClientError as error:
                ledger.errors.append(error)
            finally:
                ledger.adding -= 1
            time.sleep(_PAUSE_S)

    def consume(self, client: Disque, ledger: Ledger) -> None:
        """Process jobs until all are delivered."""
        while ledger.is_open():
            try:
                for job in client.get_jobs("blocking", count=10, timeout_ms=500):
                    ledger.delivered.add(job.id)
                    client.ack_jobs(job.id)
            except ClientError as error:
                ledger.errors.append(error)

    # -- the Twisted client ------------------------------------------------------------------

    async def produce_tx(self, client: DisqueClient, ledger: Ledger) -> None:
        """Add jobs until the ledger is finished."""
        while not ledger.is_over:
            ledger.adding += 1
            try:
                job_id = await client.add_job("tx", "b", 2000, replicate=2, retry_s=2, ttl_s=600)
                ledger.accepted.add(job_id)
            except ClientError as error:
                ledger.errors.append(error)
            finally:
                ledger.adding -= 1
            await deferLater(reactor, _PAUSE_S)

    async def consume_tx(self, client: DisqueClient, ledger: Ledger) -> None:
        """Process jobs until all are delivered."""
        while ledger.is_open():
            try:
                jobs = await client.take("tx", count=10, timeout_s=0.5)
                ledger.delivered.update(job.id for job in jobs)
                await client.ack_taken(jobs)
            except ClientError as error:
                ledger.errors.append(error)

    async def test_killed_nodes(self) -> None:
        """Every accepted job is delivered; only requests sent to a node that died, or that could
        not be copied, fail."""
        blocking, tx = Ledger(), Ledger()
        clients = [Disque(self.addresses[:1], timeout_s=15) for _ in range(2)]
        client = DisqueClient(self.addresses[:1], timeout_s=15)
        work = [
            deferToThread(self.kill_each, blocking, tx),
            deferToThread(self.produce, clients[0], blocking),
            deferToThread(self.consume, clients[1], blocking),
        ]
        for _ in range(5):
            work.append(Deferred.fromCoroutine(self.produce_tx(client, tx)))
            work.append(Deferred.fromCoroutine(self.consume_tx(client, tx)))
        await gatherResults(work)
        await client.close()
        for blocking_client in clients:
            blocking_client.close()
        for ledger in (blocking, tx):
            missing = ledger.accepted - ledger.delivered
            shown = {job: [node.show(job) for node in self.fleet.nodes] for job in missing}
            self.assertEqual({}, shown)
            self.assertGreater(len(ledger.accepted), 20)
            names = {type(error).__name__ for error in ledger.errors}
            self.assertLessEqual(names, {"OutcomeUnknown", "NotEnoughReplicas"})
