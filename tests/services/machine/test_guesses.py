"""Wrong passwords, by network."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from disque_tx.services.machine.guesses import (
    NETWORKS_MAX,
    TRIES_MAX,
    TRY_MS,
    Guesses,
    network_of,
)


class NetworkTests(SynchronousTestCase):
    """Which addresses one client may have."""

    def test_alike(self) -> None:
        """A client with many addresses is one client: all of loopback, and 64 bits of IPv6."""
        for hosts in (
            ("127.0.0.1", "127.255.3.4", "::1", "::ffff:127.0.0.9"),
            ("192.0.2.7", "::ffff:192.0.2.7"),
            ("2001:db8::1", "2001:db8::2", "2001:db8:0:0:ffff::%eth0"),
            ("", "?"),
        ):
            self.assertEqual(1, len(set(map(network_of, hosts))), hosts)

    def test_different(self) -> None:
        """Others are others: nobody locks out a neighbour."""
        hosts = ("", "127.0.0.1", "192.0.2.7", "192.0.2.8", "2001:db8::1", "2001:db8:0:1::1")
        self.assertEqual(len(hosts), len(set(map(network_of, hosts))))


class GuessesTests(SynchronousTestCase):
    """Tries that are used up, and come back."""

    def setUp(self) -> None:
        self.now_ms = 50_000
        self.guesses = Guesses(lambda: self.now_ms)

    def wrong(self, times: int, network: str = "x") -> None:
        """Send so many wrong passwords."""
        for _ in range(times):
            self.guesses.wrong(network)

    def test_limited(self) -> None:
        """Ten wrong passwords may be sent at once, then one every six seconds."""
        self.wrong(TRIES_MAX - 1)
        self.assertEqual(0, self.guesses.wait_s("x"))
        self.wrong(1)
        self.assertEqual((6, 0), (self.guesses.wait_s("x"), self.guesses.wait_s("y")))
        self.now_ms += TRY_MS - 1_500
        self.assertEqual(2, self.guesses.wait_s("x"))
        self.now_ms += 1_500
        self.assertEqual(0, self.guesses.wait_s("x"))
        self.wrong(1)
        self.assertEqual(6, self.guesses.wait_s("x"))

    def test_forgotten(self) -> None:
        """An attacker with many networks takes no memory without limit, and who has made a
        mistake is forgotten after a while."""
        for number in range(NETWORKS_MAX + 100):
            self.wrong(1, str(number))
        self.assertEqual(NETWORKS_MAX, len(self.guesses))
        self.now_ms += TRY_MS
        self.guesses.wait_s(str(NETWORKS_MAX))
        self.assertEqual(NETWORKS_MAX - 1, len(self.guesses))
