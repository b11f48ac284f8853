"""What a channel of kombu asks of a node, and in which order."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from kombu import Connection

from disque_tx.client import ClientError
from disque_tx.client.blocking import Disque, TakenJob
from disque_tx.integrations.celery.channel import DisqueChannel
from disque_tx.integrations.celery.fetcher import MessageFetcher
from disque_tx.integrations.celery.messages import encoded
from disque_tx.worker import Letter
from tests.client.scripted import HANG_UP
from tests.integrations.nodes import JOB_ID, NOTHING, FrameworkCase, array, job

_MESSAGE = {
    "body": "eA==",
    "content-type": "text/plain",
    "content-encoding": "utf-8",
    "headers": {},
    "properties": {
        "delivery_info": {"exchange": "", "routing_key": "q"},
        "delivery_tag": "t",
        "body_encoding": "base64",
    },
}


def _counts(letter: Letter) -> tuple[int, int]:
    return letter.nacks, letter.additional_deliveries


class Loop:
    """An event loop as the worker has it. ``readers``: by descriptor."""

    def __init__(self) -> None:
        self.readers: dict[int, Callable[[], None]] = {}
        self.on_tick: set[Callable[[], None]] = set()

    def add_reader(self, fd: int, callback: Callable[[], None]) -> None:
        """Watch a descriptor."""
        self.readers[fd] = callback

    def remove(self, fd: int) -> None:
        """Watch it no more; it is open still."""
        os.fstat(fd)
        del self.readers[fd]


class ChannelTests(FrameworkCase):
    """The end of a message."""

    def setUp(self) -> None:
        super().setUp()
        self.connection = Connection(
            f"disque://{self.scripted.address}",
            transport="disque_tx.integrations.celery.transport:Transport",
        )
        self.addCleanup(self.connection.release)
        self.channel: DisqueChannel = self.connection.channel()
        self.channel.basic_qos(0, 1, False)
        broker = self.channel.broker
        broker.leases = self.held = self.leases(broker.client.servers)

    def got(self) -> Any:
        """A message that is held."""
        self.deliver(encoded(_MESSAGE))
        message = self.channel.basic_get("q")
        self.assertEqual(JOB_ID, message.delivery_tag)
        self.assertTrue(self.held.holds(JOB_ID))
        self.assertFalse(self.channel.qos.can_consume())
        return message

    def assert_settled(self, *words: str) -> None:
        """Assert what was asked for the message, and that nothing of it is left."""
        self.assertEqual([list(words)], self.asked())
        self.assertFalse(self.held.holds(JOB_ID))
        self.assertEqual({}, self.channel._taken)

    def test_ack(self) -> None:
        """A message is acknowledged once, and not held any more."""
        self.got().ack()
        self.assert_settled("ACKJOB", JOB_ID)
        self.assertTrue(self.channel.qos.can_consume())

    def test_requeue(self) -> None:
        """A message that is given back is queued again, when no heartbeat can come after that."""
        self.got().requeue()
        self.assert_settled("NACK", JOB_ID)
        self.assertEqual([(JOB_ID, [])], self.held.withdrawn)
        self.assertTrue(self.channel.qos.can_consume())

    def test_reject(self) -> None:
        """A message that is rejected is done."""
        self.got().reject()
        self.assert_settled("ACKJOB", JOB_ID)
        self.assertTrue(self.channel.qos.can_consume())

    def test_closed(self) -> None:
        """What is held at the end goes back to its queue; nothing of it is lost or acknowledged."""
        self.got()
        self.channel.close()
        self.assert_settled("NACK", JOB_ID)
        self.assertEqual([(JOB_ID, [])], self.held.withdrawn)

    def consumed(self, no_ack: bool) -> Any:
        """The message that a consumer of its queue gets."""
        found: list[Any] = []
        self.deliver(encoded(_MESSAGE))
        self.channel.basic_consume("q", no_ack, found.append, "tag")
        self.channel._arrived(self.channel.broker.client.take("q"))
        self.assertEqual(1, self.channel.deliver())
        (message,) = found
        self.assertEqual(b"x", message.body)
        return message

    def test_consumed(self) -> None:
        """A consumer gets the messages of its queue, each until it acknowledges it."""
        message = self.consumed(no_ack=False)
        self.assertEqual([], self.asked())
        self.assertFalse(self.channel.qos.can_consume())
        message.ack()
        self.assert_settled("ACKJOB", JOB_ID)
        self.assertTrue(self.channel.qos.can_consume())

    def test_consumed_at_once(self) -> None:
        """A consumer that acknowledges nothing gets them too, and they are done then."""
        self.consumed(no_ack=True)
        self.assert_settled("ACKJOB", JOB_ID)
        self.assertTrue(self.channel.qos.can_consume())

    def test_cancelled(self) -> None:
        """A consumer that was cancelled gets no more: they go back to their queue."""
        self.consumed(no_ack=True)
        self.channel.basic_cancel("tag")
        self.deliver(encoded(_MESSAGE))
        self.channel._arrived(self.channel.broker.client.take("q"))
        self.assertEqual(0, self.channel.deliver())
        self.assertEqual(["ACKJOB", "NACK"], self.commands())

    def test_unwanted(self) -> None:
        """A message of a queue from which nobody consumes any more goes back to it."""
        self.deliver(encoded(_MESSAGE))
        self.channel._arrived(self.channel.broker.client.take("q"))
        self.assertEqual(0, self.channel.deliver())
        self.assert_settled("NACK", JOB_ID)
        self.assertEqual([(JOB_ID, [])], self.held.withdrawn)

    def test_in_turn(self) -> None:
        """Of several queues another one comes first each time, so that none is left out."""
        for queue in "abc":
            self.channel.basic_consume(queue, False, self.fail, queue)
        wanted: list[list[str]] = []
        self.patch(self.channel._fetcher, "want", lambda names, _: wanted.append(names))
        for _ in range(4):
            self.channel.fetch()
        plain = ["".join(name for name in names if "\x06" not in name) for names in wanted]
        self.assertEqual(["bca", "cab", "abc", "bca"], plain)

    def test_damaged(self) -> None:
        """A job that is no message becomes a dead letter before it is acknowledged: a crash in
        between may double it, and never loses it."""
        self.deliver(b"\xff")
        (found,) = self.channel.broker.client.take("q")
        self.channel._arrived([found])
        self.connection.transport._callbacks["q"] = self.fail
        self.assertEqual(0, self.channel.deliver())
        self.assertEqual([["ADDJOB", "dead:q"], ["ACKJOB", JOB_ID]], [w[:2] for w in self.asked()])
        self.assertFalse(self.held.holds(JOB_ID))

    def test_dead_letter(self) -> None:
        """Who looks at the dead letter finds the job as it was, and why it is there; so does who
        reads the log. It is kept for a month."""
        self.deliver(b"\xff")
        with self.assertLogs("disque_tx.integrations.celery.broker", "ERROR") as logged:
            self.assertIsNone(self.channel.basic_get("q"))
        (words,) = [words for words in self.scripted.requests if words[0] == b"ADDJOB"]
        letter = Letter.decoded(words[2])
        self.assertEqual(("q", JOB_ID, b"\xff"), (letter.queue, letter.id, letter.body))
        self.assertEqual(("celery", "", 1, 2), (letter.worker, letter.traceback, *_counts(letter)))
        self.assertEqual(
            [f"Job {JOB_ID} of queue 'q' became a dead letter: {letter.reason}"],
            [record.getMessage() for record in logged.records],
        )
        options = dict(zip(words[4::2], words[5::2], strict=False))
        self.assertEqual((b"60", b"2592000"), (options[b"RETRY"], options[b"TTL"]))
        self.assertEqual({}, self.channel._taken)

    def test_damaged_and_away(self) -> None:
        """One of which no dead letter can be made is not acknowledged."""
        self.deliver(b"\xff")
        self.scripted.answer("ADDJOB", HANG_UP)
        self.assertRaises(ClientError, self.channel.basic_get, "q")
        self.assertNotIn("ACKJOB", self.commands())

    def test_descriptors(self) -> None:
        """A worker that connects again and again keeps no descriptor of the connections before."""
        transport, loop = self.connection.transport, Loop()
        transport.register_with_event_loop(None, loop)
        transport.register_with_event_loop(None, loop)
        (fd,) = loop.readers
        transport.wake()
        self.assertEqual(1, os.eventfd_read(fd))
        transport.unregister_from_event_loop(None, loop)
        self.assertEqual(({}, set()), (loop.readers, loop.on_tick))
        transport.register_with_event_loop(None, loop)
        self.connection.release()
        self.assertEqual(({}, set()), (loop.readers, loop.on_tick))
        self.assertRaises(OSError, os.fstat, fd)

    def test_woken(self) -> None:
        """A worker with an event loop gets what was fetched when its descriptor is readable, each
        message once."""
        transport, loop = self.connection.transport, Loop()
        transport.register_with_event_loop(None, loop)
        got: list[object] = []
        transport._callbacks["q"] = got.append
        self.deliver(encoded(_MESSAGE))
        (found,) = self.channel.broker.client.take("q")
        self.channel._arrived([found])
        ((_fd, readable),) = loop.readers.items()
        readable()
        readable()
        self.assertEqual(1, len(got))
        transport.unregister_from_event_loop(None, loop)


class FetcherTests(FrameworkCase):
    """The thread that fetches."""

    def test_abandoned(self) -> None:
        """Jobs that arrive when nobody wants them any more go back to their queue at once."""
        found: list[object] = []

        class Late(Disque):
            """Is told meanwhile that the jobs are not wanted."""

            def take_in_order(self, *queues: Any, **options: Any) -> list[TakenJob]:
                jobs = super().take_in_order(*queues, **options)
                fetcher.abandon()
                return jobs

        self.scripted.answer("GETJOB", array(job()), NOTHING)
        client = Late(self.scripted.address)
        self.addCleanup(client.close)
        fetcher = MessageFetcher(client, found.append)
        fetcher.want(["q"], 1)
        thread = fetcher._thread
        assert thread is not None
        thread.join()
        self.assertEqual(([], [["NACK", JOB_ID]]), (found, self.asked()))

    def test_count(self) -> None:
        """No more jobs are fetched than there is room for, and none without room."""
        client = Disque(self.scripted.address)
        self.addCleanup(client.close)
        self.deliver(b"x")
        fetcher = MessageFetcher(client, lambda jobs: fetcher.abandon())
        fetcher.want(["q"], 0)
        self.assertIsNone(fetcher._thread)
        fetcher.want(["q"], 3)
        thread = fetcher._thread
        assert thread is not None
        thread.join()
        words = [word.decode() for word in self.scripted.requests[0]]
        self.assertEqual("3", words[words.index("COUNT") + 1])
        self.assertEqual(["q"], words[words.index("FROM") + 1 :])
