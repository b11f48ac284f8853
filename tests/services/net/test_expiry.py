"""What operators and monitoring read of certificates that end soon."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from disque_tx.errors import ConfigError
from disque_tx.services.net.certificates import Certificates, Identity
from tests.engine.aof.bench import Lines

_DAY_S = 86_400
_NOW_S = 1_800_000_000.0


class Times:
    """A certificate with these times, in seconds from now; ``None``: it does not say."""

    def __init__(self, begins_s: float | None, ends_s: float | None) -> None:
        self.certificate = self
        self._times = (begins_s, ends_s)

    def get_notBefore(self) -> bytes | None:
        """When it begins."""
        return self._asn1(self._times[0])

    def get_notAfter(self) -> bytes | None:
        """When it ends."""
        return self._asn1(self._times[1])

    def _asn1(self, from_now_s: float | None) -> bytes | None:
        if from_now_s is None:
            return None
        return datetime.fromtimestamp(_NOW_S + from_now_s, UTC).strftime("%Y%m%d%H%M%SZ").encode()


class ExpiryTests(SynchronousTestCase):
    """Certificates of the bus and of a listener."""

    def setUp(self) -> None:
        self.log = Lines()
        self.clock = Clock()
        self.identities: list[Identity] = []
        self.watch = Certificates(lambda: self.identities, self.log, self.clock, self.now_s)

    def now_s(self) -> float:
        """The time of day."""
        return _NOW_S + self.clock.seconds()

    def add(self, name: str, begins_s: float | None, ends_s: float | None) -> Identity:
        """A certificate."""
        times: Any = Times(begins_s, ends_s)
        self.identities.append(Identity(name, lambda: times))
        return self.identities[-1]

    def said(self) -> list[str]:
        """The lines of a look, without the advice that all of them end with."""
        self.log.lines.clear()
        self.watch.check()
        advice = (
            ". Put a new one in its place, then send SIGHUP to this process ('systemctl reload"
            " disque')."
        )
        self.assertTrue(all(line.endswith(advice) for line in self.log.lines), self.log.lines)
        return [line.removesuffix(advice) for line in self.log.lines]

    def test_soon(self) -> None:
        """The last thirty days of a long life are near the end, or the last third of a shorter
        one, to the second; the line says when it ends, and in how many whole days."""
        for life_days, left_s, shown in (
            (365, 30 * _DAY_S, None),
            (365, 30 * _DAY_S - 1, 29),
            (90, 30 * _DAY_S - 1, 29),
            (9, 3 * _DAY_S, None),
            (9, 3 * _DAY_S - 1, 2),
            (365, 0, 0),
        ):
            self.identities.clear()
            self.add("bus", left_s - life_days * _DAY_S, left_s)
            ends = datetime.fromtimestamp(_NOW_S + left_s, UTC).strftime("%Y-%m-%d %H:%M UTC")
            line = f"warning: bus: the certificate expires on {ends}, in {shown} days"
            expected = [] if shown is None else [line]
            self.assertEqual(expected, self.said(), (life_days, left_s))

    def test_over(self) -> None:
        """A certificate that has expired is said to keep others out; one that does not say when it
        ends is left alone."""
        self.add("unknown", None, None)
        self.add("listener", -9 * _DAY_S, -1)
        self.assertEqual(
            [
                "warning: listener: the certificate expired on 2027-01-15 07:59 UTC: clients and"
                " nodes that check it refuse to connect"
            ],
            self.said(),
        )

    def test_info(self) -> None:
        """INFO has the one that ends first, whichever place it has, and no negative time."""
        self.assertEqual([], self.watch.info())
        self.add("unknown", None, None)
        self.assertEqual([], self.watch.info())
        self.add("late", -100, 300)
        self.add("first", -100, 200)
        self.add("last", -100, 400)
        self.assertEqual(
            [
                ("certificate_next", "first"),
                ("certificate_expires_in_seconds", "200"),
                ("certificate_near_end_seconds", "100"),
            ],
            self.watch.info(),
        )
        self.clock.advance(500)
        self.assertEqual("0", self.watch.info()[1][1])
        self.identities[2:] = []
        self.add("unbegun", None, 100)
        self.assertEqual(str(30 * _DAY_S), dict(self.watch.info())["certificate_near_end_seconds"])

    def test_daily(self) -> None:
        """A look is taken at the start, and once a day until the stop."""
        self.add("bus", -9 * _DAY_S, _DAY_S)
        self.watch.startService()
        self.assertEqual(1, len(self.log.lines))
        self.clock.advance(_DAY_S - 1)
        self.assertEqual(1, len(self.log.lines))
        self.clock.advance(1)
        self.assertEqual(2, len(self.log.lines))
        self.watch.stopService()
        self.assertEqual([], self.clock.getDelayedCalls())

    def test_reload(self) -> None:
        """Each certificate is read again, and what became of each is said; one that cannot be read
        keeps no other from it."""
        self.watch.reload()
        self.assertEqual(["notice: There are no certificates to reload"], self.log.lines)
        self.log.lines.clear()
        self.add("broken", -_DAY_S, 400 * _DAY_S)
        self.add("whole", -_DAY_S, 400 * _DAY_S)
        self.patch(self.identities[0], "_read", self.refuse)
        self.watch.reload()
        self.assertEqual(
            [
                "warning: broken: the old certificate stays in use: no such file",
                "notice: whole: the certificate was reloaded",
            ],
            self.log.lines,
        )

    def refuse(self) -> Any:
        """The files cannot be used."""
        raise ConfigError("no such file")
