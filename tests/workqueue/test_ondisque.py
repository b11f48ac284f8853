"""The work queue on Disque, by what a node is asked, and by what workers get."""

from __future__ import annotations

import hashlib
from typing import Any

from disque_tx.workqueue import Item, WorkQueue
from disque_tx.workqueue.disque import DisqueItem, DisqueWorkQueue
from disque_tx.workqueue.errors import NotOnDisque
from disque_tx.workqueue.items import job_body
from tests.client.scripted import JOB_ID, array, bulk, job
from tests.client.tx.network import NetworkTestCase

_ITEM = Item("one", b"data")
_BODY = job_body(_ITEM)


class OnDisqueCase(NetworkTestCase):
    """A node, and a work queue on it whose leases last for 77 s."""

    def setUp(self) -> None:
        super().setUp()
        self.server = self.node()
        self.queue: DisqueWorkQueue = WorkQueue.on_disque(self.client(self.server), "q", 77)

    def after(self, call: Any) -> list[bytes]:
        """The words of the request, without the command, after this call."""
        self.result(call)
        return self.server.requests[-1][1:]


class AddTests(OnDisqueCase):
    """Items are added."""

    def test_unique_item(self) -> None:
        """An item that is new is added as it is, with the time that its leases last."""
        self.server.answer("ADDJOB", bulk(JOB_ID))
        words = self.after(self.queue.add_unique_item(_ITEM))
        self.assertEqual([b"q", _BODY, b"5000", b"RETRY", b"77"], words)

    def test_once(self) -> None:
        """An item whose ID is there already is not added again, and its adder sees that."""
        for new in (1, 0):
            self.server.answer("ADDJOB", array(bulk(JOB_ID), b":%d\r\n" % new))
            self.assertIs(bool(new), self.result(self.queue.add_item(_ITEM)))
        words = self.server.requests[-1]
        self.assertEqual(b"workqueue-item 1 q one", words[words.index(b"UNIQUE") + 1])
        self.assertEqual(b"77", words[words.index(b"RETRY") + 1])

    def test_long_ids(self) -> None:
        """IDs may be longer than keys of a node, of up to 512 bytes: then a hash is the key."""
        self.server.answer("ADDJOB", array(bulk(JOB_ID), b":1\r\n"))
        for size, is_whole in ((493, True), (494, False), (1000, False)):
            words = self.after(self.queue.add_item(Item("i" * size, b"")))
            whole = b"workqueue-item 1 q " + b"i" * size
            hashed = b"workqueue-item-hash " + hashlib.sha256(whole).hexdigest().encode()
            key = words[words.index(b"UNIQUE") + 1]
            self.assertEqual(whole if is_whole else hashed, key)

    def test_original(self) -> None:
        """An original cannot add an item once; the error says what to do."""
        self.server.answer("ADDJOB", b"-ERR syntax error\r\n")
        adding = self.queue.add_item(_ITEM)
        self.network.settle()
        error = self.failureResultOf(adding, NotOnDisque).value
        self.assertIn("Use add_unique_item()", str(error))


class WorkTests(OnDisqueCase):
    """A worker leases an item, and does something with it."""

    def setUp(self) -> None:
        super().setUp()
        self.server.answer("GETJOB", array(job(body=_BODY)))

    def leased(self) -> DisqueItem:
        """An item that was leased."""
        found = self.result(self.queue.lease())
        assert found is not None
        return found

    def test_item(self) -> None:
        """A worker gets the item as it was added, and jobs of other programs as items named after
        the job."""
        item = self.leased()
        self.assertEqual(("one", b"data", JOB_ID), (item.id, item.data, item.job.id))
        self.server.answer("GETJOB", array(job(body=b"other")))
        item = self.leased()
        self.assertEqual((JOB_ID, b"other"), (item.id, item.data))

    def test_settled(self) -> None:
        """Completing an item acknowledges its job, giving it back queues the job, and a worker sees
        whether that had an effect."""
        item = self.leased()
        for command, call in (("ACKJOB", self.queue.complete), ("NACK", self.queue.give_back)):
            for count in (1, 0):
                self.server.answer(command, b":%d\r\n" % count)
                self.assertIs(bool(count), self.result(call(item)))
                expected = [command.encode(), JOB_ID.encode()]
                self.assertEqual(expected, self.server.requests[-1])

    def test_extended(self) -> None:
        """A worker that needs more time sees whether it has it: a job that is done, or not known,
        or too old, is not its any more."""
        item = self.leased()
        for reply, expected in (
            (b":77\r\n", True),
            (b"-NOJOB Job not known in the context of this node.\r\n", False),
            (b"-TOOLATE Half of job TTL already elapsed.\r\n", False),
            (b"-ACKED Can't postpone an acknowledged job.\r\n", False),
        ):
            self.server.answer("WORKING", reply)
            self.assertIs(expected, self.result(self.queue.extend_lease(item)))
            self.assertEqual([b"WORKING", JOB_ID.encode()], self.server.requests[-1][:2])

    def test_too_long(self) -> None:
        """More time than RETRY is refused before anything is asked; RETRY itself is not."""
        item = self.leased()
        count = len(self.server.requests)
        error = self.failureResultOf(self.queue.extend_lease(item, 77.5), NotOnDisque).value
        self.assertIn("the RETRY, which is 77 s", str(error))
        self.assertEqual(count, len(self.server.requests))
        self.server.answer("WORKING", b":77\r\n")
        self.assertIs(True, self.result(self.queue.extend_lease(item, 77)))

    def test_not_leased(self) -> None:
        """An item that was not leased from Disque has no job to settle: the error says so."""
        for call in (self.queue.complete, self.queue.extend_lease, self.queue.give_back):
            error = self.failureResultOf(call(_ITEM), NotOnDisque).value
            self.assertIn("Only an item that was leased from Disque", str(error))
        self.assertEqual([], self.server.requests)


class CountTests(OnDisqueCase):
    """What is counted and cleaned."""

    def test_counted(self) -> None:
        """The items that wait are counted by the node; those that are worked on are counted by
        nobody, and the error says what can be asked instead."""
        self.server.answer("QLEN", b":5\r\n")
        self.assertEqual(5, self.result(self.queue.queue_len()))
        self.assertEqual([[b"QLEN", b"q"]], self.server.requests)
        for call in (self.queue.processing, self.queue.counts):
            error = self.failureResultOf(call(), NotOnDisque).value
            self.assertIn("Use queue_len()", str(error))

    def test_cleaned(self) -> None:
        """Programs that clean work queues on Redis also run on Disque, where nothing is to do."""
        for clean in (self.queue.light_clean, self.queue.deep_clean):
            self.assertEqual(0, self.result(clean()))
        self.assertEqual([], self.server.requests)

    def test_default(self) -> None:
        """Leases last for five minutes unless the program says otherwise."""
        client = self.client(self.server)
        self.assertEqual(300, WorkQueue.on_disque(client, "q").retry_s)
        self.assertEqual(300, DisqueWorkQueue(client, "q").retry_s)
