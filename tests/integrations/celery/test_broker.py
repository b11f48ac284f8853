"""What the channels of one connection share."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from disque_tx.client.addresses import Address
from disque_tx.integrations.celery.broker import Broker
from disque_tx.integrations.celery.options import broker_options
from tests.cli.livenode import LiveNode
from tests.client.scripted import JOB_ID


class CloseTests(SynchronousTestCase):
    """The end of a connection of kombu."""

    def test_order(self) -> None:
        """Bindings and leases end before their connections close: what one of them asked after
        that would open a connection which nobody closes."""
        node = LiveNode()
        self.addCleanup(node.stop)
        broker = Broker(broker_options(f"disque://{node.address}", {}))
        broker.bindings.add("reply", ("key", None, "queue"), False)
        broker.leases.keep([(JOB_ID, Address("127.0.0.1", node.port))])
        threads = [broker.bindings._thread, broker.leases._thread]
        close, renewed = broker.client.close, broker.bindings._closed.is_set
        found: list[bool] = []

        def closing() -> None:
            found.append(renewed())
            close()

        self.patch(broker.client, "close", closing)
        broker.close()
        self.assertEqual([True], found)
        for thread in threads:
            assert thread is not None
            thread.join(10)
            self.assertFalse(thread.is_alive())
