"""Settings of the transport: what is wrong is said when the program starts."""

from __future__ import annotations

import ssl
from typing import Any

from kombu import Connection
from twisted.trial.unittest import SynchronousTestCase

import disque_tx.integrations.celery  # noqa: F401 -- registers disque://
from disque_tx.client import BadAddress
from disque_tx.client.addresses import Address
from disque_tx.client.options import TLS
from disque_tx.integrations.celery.options import (
    BadBrokerOption,
    broker_options,
    connection_url,
    without_password,
)


class UrlTests(SynchronousTestCase):
    """URLs of brokers."""

    def test_nodes(self) -> None:
        """A URL may name several nodes, a password, and a virtual host that means nothing."""
        found = broker_options("disque://:p%40ss@a:1,b:2//", {})
        self.assertEqual((Address("a", 1), Address("b", 2)), found.seeds.addresses)
        self.assertEqual("p@ss", found.seeds.password)
        self.assertIsNone(found.tls)

    def test_names(self) -> None:
        """A URL may name the cluster instead of its nodes; kombu passes what it leaves of that."""
        for url, expected in (
            ("disque+dns://:pw@n.example:1//", Address("n.example", 1, "dns")),
            ("disque+srv://_d._tcp.example", Address("_d._tcp.example", 0, "srv")),
        ):
            passed = connection_url(Connection(url))
            for form in (url, passed):
                self.assertEqual((expected,), broker_options(form, {}).seeds.addresses)
        self.assertEqual("pw", broker_options("dns://:pw@n.example", {}).seeds.password)

    def test_default(self) -> None:
        """Without a node, it is the one on this machine."""
        self.assertEqual(
            (Address("127.0.0.1", 7711),), broker_options("disque://", {}).seeds.addresses
        )

    def test_tls(self) -> None:
        """TLS by the scheme, or by Celery's setting with its files."""
        self.assertEqual(TLS(), broker_options("disques://a", {}).tls)
        files = {"ca_certs": "ca", "certfile": "c", "keyfile": "k", "cert_reqs": ssl.CERT_NONE}
        self.assertEqual(
            TLS("ca", "c", "k", verify=False), broker_options("disque://a", {}, files).tls
        )
        self.assertEqual(TLS(), broker_options("disque://a", {}, True).tls)

    def test_bad(self) -> None:
        """A URL that cannot be used is refused, and its password is not shown."""
        for url in ("disque://:secret@a:0", "redis://a", "disque://user:secret@a"):
            error = self.assertRaises(BadAddress, broker_options, url, {})
            self.assertNotIn("secret", str(error))

    def test_shown(self) -> None:
        """A URL in a log has no password."""
        self.assertEqual("disque://:**@a:1", without_password("disque://:secret@a:1"))
        self.assertEqual("disque://a:1", without_password("disque://a:1"))


class SeveralUrlsTests(SynchronousTestCase):
    """A broker with several URLs: kombu goes on to the next one when a connection fails."""

    def test_next(self) -> None:
        """The next URL is used as it was written, with its password and TLS."""
        urls = ["disque://a:1", "disque://:p%40%2Fs@b:2", "disques://[::1]:3", "disque://"]
        connection = Connection(";".join(urls))
        self.assertEqual("disque://a:1", connection.as_uri())
        found = []
        for url in urls[1:]:
            connection.switch(url)
            found.append(connection.as_uri(include_password=True))
        self.assertEqual(["disque://:p%40%2Fs@b:2", "disques://[::1]:3", "disque://"], found)

    def test_shown(self) -> None:
        """A password of a later URL is not shown, either."""
        connection = Connection("disque://a:1;disque://:secret@b:2")
        connection.switch("disque://:secret@b:2")
        self.assertEqual("disque://:**@b:2", connection.as_uri())

    def test_bad(self) -> None:
        """What kombu could not take apart later is refused at the start."""
        for urls in (["disque://a,b", "disque://c"], ["disque://a", "disque://unix:/run/socket"]):
            error = self.assertRaises(BadAddress, Connection(urls).connect)
            self.assertIn("one host", str(error))


class OptionTests(SynchronousTestCase):
    """``broker_transport_options``."""

    def test_all(self) -> None:
        """Every option arrives."""
        options: dict[str, Any] = {"retry": 5, "ttl": 60, "replicate": 3, "prefetch": 7}
        options |= {"queue_name_prefix": "x:", "priority_steps": [0, 5]}
        found = broker_options("disque://a", options, timeout_s=2)
        self.assertEqual(
            (5, 60, 3, 7), (found.retry_s, found.ttl_s, found.replicate, found.prefetch)
        )
        self.assertEqual(("x:", (0, 5), 2.0), (found.prefix, found.priorities, found.timeout_s))

    def test_bad(self) -> None:
        """An option that is misspelt or out of its range is named."""
        wrong: dict[str, Any] = {
            "retries": 1,
            "retry": 0,
            "ttl": "60",
            "replicate": True,
            "prefetch": 0,
            "queue_name_prefix": 1,
            "priority_steps": [1, 2],
        }
        for name, value in wrong.items():
            error = self.assertRaises(BadBrokerOption, broker_options, "disque://a", {name: value})
            self.assertIn(name, str(error))
        for steps in ([0, 10], [], "high", 3):
            self.assertRaises(
                BadBrokerOption, broker_options, "disque://a", {"priority_steps": steps}
            )

    def test_limits(self) -> None:
        """The ends of the ranges can be used, what lies beyond is refused, with the range."""
        for name, field, most in (
            ("retry", "retry_s", 4_294_967_295),
            ("ttl", "ttl_s", 4_294_967_295),
            ("replicate", "replicate", 65_535),
            ("prefetch", "prefetch", 10_000),
        ):
            for value in (1, most):
                found = broker_options("disque://a", {name: value})
                self.assertEqual(value, getattr(found, field))
            for value in (0, most + 1):
                error = self.assertRaises(
                    BadBrokerOption, broker_options, "disque://a", {name: value}
                )
                self.assertEqual(
                    f"The option {name!r} of the transport is a whole number from 1 to {most}, not"
                    f" {value}.",
                    str(error),
                )

    def test_steps(self) -> None:
        """Priorities may be given in any order, and twice; the queue of priority 0 is there
        always."""
        found = broker_options("disque://a", {"priority_steps": ["9", 0, 3, 3]})
        self.assertEqual((0, 3, 9), found.priorities)
        error = self.assertRaises(
            BadBrokerOption, broker_options, "disque://a", {"priority_steps": [1]}
        )
        self.assertEqual(
            "The option 'priority_steps' of the transport is a list of numbers from 0 to 9 that has"
            " 0, not [1].",
            str(error),
        )

    def test_unknown(self) -> None:
        """Who misspells an option reads which ones there are; those of kombu are no mistakes."""
        error = self.assertRaises(BadBrokerOption, broker_options, "disque://a", {"retries": 1})
        self.assertEqual(
            "The transport has no option 'retries'. It has retry, ttl, replicate, prefetch,"
            " queue_name_prefix, priority_steps.",
            str(error),
        )
        self.assertEqual(60, broker_options("disque://a", {"polling_interval": 1}).retry_s)
