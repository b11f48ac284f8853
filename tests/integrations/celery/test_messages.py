"""How messages of kombu become jobs."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from disque_tx.integrations.celery.messages import (
    DamagedMessage,
    add_options,
    decoded,
    encoded,
    home,
    original,
    queue_names,
)
from disque_tx.integrations.celery.options import BrokerOptions, broker_options

_NOW = datetime(2026, 1, 1, tzinfo=UTC)


def options(**given_options: Any) -> BrokerOptions:
    """Options of a connection."""
    return broker_options("disque://a", given_options)


def message(**properties: Any) -> dict[str, Any]:
    """A message as kombu hands it over."""
    delivery = {"exchange": "", "routing_key": "q"}
    return {
        "body": "e30=",
        "content-encoding": "utf-8",
        "content-type": "application/json",
        "headers": {},
        "properties": {"delivery_info": delivery, "delivery_tag": "t", **properties},
    }


class QueueTests(SynchronousTestCase):
    """Names of queues."""

    def test_priorities(self) -> None:
        """A message is put where consumers look first if it is urgent, whatever its number is."""
        found = options(priority_steps=[0, 3, 6])
        names = queue_names("q", found)
        self.assertEqual("q", names[-1])
        places = {
            priority: names.index(home("q", message(priority=priority), found))
            for priority in (-1, 0, 2, 3, 5, 6, 9, 99, None, "high")
        }
        expected = {-1: 2, 0: 2, 2: 2, 3: 1, 5: 1, 6: 0, 9: 0, 99: 0, None: 2, "high": 2}
        self.assertEqual(expected, places)

    def test_original(self) -> None:
        """The queue of a delivered job is recognized, with a prefix and a priority."""
        found = options(queue_name_prefix="app:")
        for name in queue_names("q", found):
            self.assertTrue(name.startswith("app:q"))
            self.assertEqual("q", original(name, found))


class BodyTests(SynchronousTestCase):
    """Bodies of jobs."""

    def test_both_ways(self) -> None:
        """A message arrives as it was sent."""
        sent = message(priority=3)
        self.assertEqual(sent, decoded(encoded(sent)))

    @given(st.binary())
    def test_anything(self, body: bytes) -> None:
        """Whatever is in a queue, the worker goes on: a body is a message, or it is damaged."""
        self.assertRaises(DamagedMessage, decoded, body)

    def test_incomplete(self) -> None:
        """A message without what kombu needs is damaged."""
        for name in ("body", "headers", "properties"):
            sent = message()
            del sent[name]
            self.assertRaises(DamagedMessage, decoded, encoded(sent))


class OptionTests(SynchronousTestCase):
    """How jobs are added."""

    def added(self, sent: dict[str, Any], ttl_s: int | None = None) -> tuple[int | None, ...]:
        """DELAY, RETRY and TTL of a message."""
        found = add_options(sent, options(retry=7, ttl=1000), ttl_s, _NOW)
        return found.delay_s, found.retry_s, found.ttl_s

    def test_plain(self) -> None:
        """A message that says nothing gets the connection's options."""
        self.assertEqual((None, 7, 1000), self.added(message()))

    def test_eta(self) -> None:
        """An ETA is a delay in the node, and the life begins after it."""
        for eta, delay_s in (
            ((_NOW + timedelta(days=30)).isoformat(), 30 * 86_400),
            ((_NOW + timedelta(seconds=2.9)).isoformat(), 2),
            ("2026-01-01T01:00:10+01:00", 10),
            ("2026-01-01T00:00:10", 10),
        ):
            self.assertEqual(
                (delay_s, 7, delay_s + 1000), self.added({**message(), "headers": {"eta": eta}})
            )

    def test_no_eta(self) -> None:
        """A time that is over, or not understood, delays nothing."""
        for eta in ("2025-12-31T00:00:00+00:00", "soon", None, 5):
            sent = {**message(), "headers": {"eta": eta}}
            self.assertEqual((None, 7, 1000), self.added(sent))

    def test_life(self) -> None:
        """The shortest of the limits counts, in whole seconds, rounded up."""
        self.assertEqual((None, 7, 2), self.added(message(expiration="1500")))
        self.assertEqual((None, 7, 5), self.added(message(expiration="9000"), 5))
        self.assertEqual((None, 7, 1), self.added(message(expiration="0")))

    def test_expires(self) -> None:
        """A task of Celery's that expires is left to the workers, which note that it did."""
        sent = {**message(expiration="1500"), "headers": {"expires": "2026-01-01T00:00:01"}}
        self.assertEqual((None, 7, 1000), self.added(sent))
        self.assertEqual((None, 7, 5), self.added(sent, 5))
