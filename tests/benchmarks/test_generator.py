"""The load generator does the work that it reports, in the protocols that have no server here."""

from __future__ import annotations

import struct
from typing import Any

from twisted.internet import reactor
from twisted.internet.threads import deferToThread
from twisted.trial.unittest import TestCase

from tests.benchmarks.amqpbroker import AmqpBroker
from tests.benchmarks.brokers import Broker
from tests.benchmarks.generator import GeneratorError, load
from tests.benchmarks.natsbroker import NatsBroker

listen: Any = reactor.listenTCP
#: A few bytes, so that nearly every message arrives in parts; and more than any message has.
_PIECES = (61, 1 << 16)
_CYCLES = ("-n", "12", "-c", "2", "-d", "3")


class BrokerCase(TestCase):
    """A double that listens on a port."""

    async def loaded(self, kind: str, broker: Broker, *options: str) -> dict[str, Any]:
        """What the generator reports."""
        port = listen(0, broker, interface="127.0.0.1")
        self.addCleanup(port.stopListening)
        result: dict[str, Any] = await deferToThread(load, kind, port.getHost().port, *options)
        return result

    def assert_done(self, broker: Broker, result: dict[str, Any], jobs: int) -> None:
        """All jobs were added, taken and acknowledged once, and that is what is reported."""
        self.assertEqual((jobs, 0), (result["jobs"], result["errors"]))
        self.assertEqual(list(range(jobs)), sorted(broker.done))
        self.assertEqual({b"x" * 100}, set(broker.bodies))
        self.assertEqual(jobs, len(broker.bodies))


class NatsTests(BrokerCase):
    """JetStream."""

    async def test_cycles(self) -> None:
        """A rate of jobs counts what was acknowledged, however the messages arrive."""
        for piece in _PIECES:
            broker = NatsBroker(reactor, piece)
            result = await self.loaded("nats", broker, *_CYCLES)
            self.assert_done(broker, result, 12)

    async def test_replicas(self) -> None:
        """The comparison with three copies is one with three copies, on files."""
        broker = NatsBroker(reactor, 4096)
        await self.loaded("nats", broker, "-n", "1", "-r", "3")
        self.assertIn(b'"storage":"file","num_replicas":3', broker.streams[0])
        self.assertIn(b'"ack_policy":"explicit"', broker.streams[1])

    async def test_no_job_in_time(self) -> None:
        """A pull that ended without a job is repeated, or a slow server would stop the run."""
        broker = NatsBroker(reactor, 61, impatient=2)
        result = await self.loaded("nats", broker, *_CYCLES)
        self.assert_done(broker, result, 12)

    async def test_signs_of_life(self) -> None:
        """A PING is answered, or NATS would end the connections of a long run."""
        broker = NatsBroker(reactor, 61)
        await self.loaded("nats", broker, *_CYCLES)
        self.assertGreater(broker.pongs, 0)

    async def test_refused_job(self) -> None:
        """A job that the stream does not take is an error, and none of the rate."""
        broker = NatsBroker(reactor, 4096, refuses=True)
        result = await self.loaded("nats", broker, *_CYCLES)
        self.assertEqual(0, result["jobs"])
        self.assertGreater(result["errors"], 0)
        self.assertIn("no space", result["first_error"])

    async def test_waiting_consumer(self) -> None:
        """The latency is of jobs that were received, one after the other."""
        broker = NatsBroker(reactor, 4096)
        result = await self.loaded("nats", broker, "-m", "blocked", "-n", "5")
        self.assert_done(broker, result, 5)
        self.assertGreater(result["add"]["p50"], 0)


class AmqpTests(BrokerCase):
    """RabbitMQ's protocol."""

    async def test_cycles(self) -> None:
        """A rate of jobs counts what was acknowledged, however the frames arrive."""
        for piece in _PIECES:
            broker = AmqpBroker(reactor, piece)
            result = await self.loaded("amqp", broker, *_CYCLES)
            self.assert_done(broker, result, 12)

    async def test_confirms_for_several(self) -> None:
        """One confirm for several jobs counts for each of them once, also if one of them was
        confirmed before."""
        broker = AmqpBroker(reactor, 61, batch=3)
        result = await self.loaded("amqp", broker, *_CYCLES)
        self.assert_done(broker, result, 12)

    async def test_prefetch(self) -> None:
        """A consumer has no more jobs ahead than its depth, as with the other servers."""
        broker = AmqpBroker(reactor, 4096)
        await self.loaded("amqp", broker, *_CYCLES)
        self.assertEqual(3, broker.ahead_max)

    async def test_durable(self) -> None:
        """Jobs survive a restart, and queues, which are of the type that is named."""
        for kind, expected in (("amqp-quorum", b"quorum"), ("amqp", b"classic")):
            broker = AmqpBroker(reactor, 4096)
            await self.loaded(kind, broker, "-n", "1")
            # A number, the name, a byte of flags with durable as the second, and a table.
            self.assertEqual(b"\0\0\x02q0\x02", broker.declared[0][:6])
            said = b"\x0cx-queue-typeS" + struct.pack(">I", len(expected)) + expected
            self.assertTrue(broker.declared[0].endswith(said))
            self.assertEqual({b"\x10\0\x02"}, broker.modes)

    async def test_nacked_job(self) -> None:
        """A job that the broker does not take is an error, and none of the rate."""
        broker = AmqpBroker(reactor, 4096, nacks=True)
        result = await self.loaded("amqp", broker, *_CYCLES)
        self.assertEqual(0, result["jobs"])
        self.assertGreater(result["errors"], 0)

    async def test_denied(self) -> None:
        """Who may not log in is told, instead of waiting."""
        broker = AmqpBroker(reactor, 4096, denies=True)
        with self.assertRaisesRegex(GeneratorError, "ACCESS_REFUSED"):
            await self.loaded("amqp", broker, *_CYCLES)

    async def test_waiting_consumer(self) -> None:
        """The latency is of jobs that were received, one after the other."""
        broker = AmqpBroker(reactor, 4096)
        result = await self.loaded("amqp", broker, "-m", "blocked", "-n", "5")
        self.assert_done(broker, result, 5)
        self.assertGreater(result["add"]["p50"], 0)

    async def test_backlog(self) -> None:
        """Jobs that are to wait are not consumed."""
        broker = AmqpBroker(reactor, 4096)
        result = await self.loaded("amqp", broker, "-m", "add", "-n", "50", "-d", "10")
        self.assertEqual((50, 50, []), (result["jobs"], len(broker.ready), broker.done))
