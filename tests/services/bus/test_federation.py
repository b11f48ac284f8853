"""When the federation is woken."""

from __future__ import annotations

from disque_tx.busmessages import NEEDJOBS
from disque_tx.services.bus.federation import FederationService
from tests.services.bus.bench import BusCase


class FederationTests(BusCase):
    """A client waits for jobs that other nodes may have."""

    def test_asks_again(self) -> None:
        """Other nodes are asked at once, and again later, while the service runs."""
        service = FederationService(self.runtime)
        service.startService()
        self.start()
        _entry, other = self.called()
        self.heard(other)
        client, _transport = self.connect()
        client.dataReceived(b"GETJOB FROM q\r\n")
        self.assertEqual([NEEDJOBS], self.heard(other))
        self.settle(60_000)
        self.assertIn(NEEDJOBS, self.heard(other))
        service.stopService()
        self.assertEqual([], self.runtime.turns.deadlines)
