"""Where the console of a node can be opened."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from disque_tx.services.node.consoles import console_addresses


class ConsoleAddressTests(SynchronousTestCase):
    """The addresses that other nodes are told."""

    def test_endpoints(self) -> None:
        """A browser can open what is told, and other protocols and places are not."""
        for endpoint, expected in (
            ("tcp:7780", ["http://*:7780"]),
            ("tcp:7780:interface=127.0.0.1", ["http://127.0.0.1:7780"]),
            ("tcp:port=7780:interface=0.0.0.0:backlog=50", ["http://*:7780"]),
            (r"tcp6:7780:interface=\:\:1", ["http://[::1]:7780"]),
            ("ssl:7780:privateKey=k.pem:certKey=c.pem", ["https://*:7780"]),
            ("unix:/run/disque.http", []),
            ("systemd:domain=INET:index=0", []),
            ("tcp:0", []),
        ):
            self.assertEqual(expected, console_addresses([("http", endpoint)]))
        self.assertEqual([], console_addresses([("beanstalk", "tcp:11300")]))
