"""The settings of policies: what they take, and what they are without being set."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from disque_tx.core.policies.settings import (
    SETTINGS,
    QueuePolicy,
    is_valid,
    normal_value,
    set_value,
    show_thousandths,
    thousandths,
)
from disque_tx.errors import CommandError
from tests import profiles  # noqa: F401

#: Setting → values in their normal form at both ends of the range.
ENDS = {
    b"max-deliveries": (b"0", b"65535"),
    b"dead-queue": (b"", b"x" * 1024),
    b"dead-ttl": (b"1", b"4294967295"),
    b"retry-delay": (b"0", b"4294967295"),
    b"retry-delay-max": (b"0.001", b"4294967295"),
    b"retry-factor": (b"1", b"1000"),
    b"retry-jitter": (b"0", b"1"),
    b"retry-on-timeout": (b"no", b"yes"),
    b"retry-from": (b"queueing", b"delivery"),
    b"ttl": (b"1", b"4294967295"),
    b"retry": (b"0", b"4294967295"),
    b"delay": (b"0", b"4294967295"),
    b"replicate": (b"1", b"65535"),
    b"max-length": (b"0", b"4294967295"),
    b"overflow": (b"reject", b"drop-oldest"),
    b"pause": (b"none", b"all"),
    b"copy-to": (b"", b'b "c d"'),
    b"concurrency": (b"0", b"4294967295"),
    b"rate": (b"0.001", b"1000000"),
    b"rate-burst": (b"1", b"1000000"),
}
#: Setting → values that are none of it.
WRONG = {
    b"max-deliveries": (b"65536", b"-1", b"1.5", b"", b"x", b"1e3", b"\xb2"),
    b"dead-queue": (b"x" * 1025,),
    b"dead-ttl": (b"0", b"4294967296", b"9" * 400),
    b"retry-delay": (b"1.", b".5", b"1.2345", b"4294967295.001", b"inf", b"nan"),
    b"retry-factor": (b"0.999", b"1000.001"),
    b"retry-jitter": (b"1.001", b"-0"),
    b"retry-on-timeout": (b"1", b"true"),
    b"retry-from": (b"", b"queueing "),
    b"ttl": (b"0",),
    b"overflow": (b"drop",),
    b"pause": (b"in out",),
    b"copy-to": (b'"a', b'""', b"x" * 1025, b" ".join(b"%d" % n for n in range(17))),
    b"concurrency": (b"-1", b"1.5", b"4294967296"),
    b"rate": (b"0.0001", b"1000000.001", b"1/s"),
    b"rate-burst": (b"0", b"0.5"),
}


class SettingTests(SynchronousTestCase):
    """Every setting in the table."""

    def test_ends(self) -> None:
        """Both ends of every range can be set."""
        for name, values in ENDS.items():
            for value in values:
                self.assertEqual(value, normal_value(name, value))
                self.assertTrue(is_valid(name, value))
        self.assertLessEqual(set(ENDS), set(SETTINGS))

    def test_wrong(self) -> None:
        """A value out of range is refused with the name of the setting and what it takes, so that
        a typing mistake never becomes a policy."""
        for name, values in WRONG.items():
            for value in values:
                error = self.assertRaises(CommandError, normal_value, name, value)
                self.assertIn(f"Policy setting '{name.decode()}' must be ", error.text)
                self.assertFalse(is_valid(name, value))

    def test_unknown(self) -> None:
        """An unknown setting is refused by name, however long that is."""
        error = self.assertRaises(CommandError, normal_value, b"max-tries", b"1")
        self.assertEqual("Unknown policy setting 'max-tries'", error.text)
        error = self.assertRaises(CommandError, normal_value, b"x" * 1_000_000, b"1")
        self.assertLess(len(error.text), 200)
        self.assertFalse(is_valid(b"max-tries", b"1"))

    def test_normal_form(self) -> None:
        """Values that mean the same are the same, so nodes do not differ about them."""
        self.assertEqual(b"5", normal_value(b"retry-delay", b"05.000"))
        self.assertEqual(b"0.25", normal_value(b"retry-delay", b"0.250"))
        self.assertEqual(b"yes", normal_value(b"retry-on-timeout", b"YES"))
        self.assertFalse(is_valid(b"retry-delay", b"05"))
        self.assertEqual(b'a "b c"', normal_value(b"copy-to", b""" "a"  'b c' a """))

    def test_every_setting_has_an_effect(self) -> None:
        """A setting that can be set changes what is in force."""
        for name, (first, last) in ENDS.items():
            policies = [QueuePolicy(b"q"), QueuePolicy(b"q")]
            set_value(policies[0], b"q", name, first)
            set_value(policies[1], b"q", name, last)
            slots = [slot for slot in dir(QueuePolicy) if not slot.startswith("_")]
            states = [[getattr(one, slot) for slot in slots] for one in policies]
            self.assertNotEqual(states[0], states[1], name)

    def test_dead_queue_of_a_queue(self) -> None:
        """One policy for many queues gives each its own queue of dead letters."""
        policy = QueuePolicy(b"mail")
        self.assertEqual(b"dead:mail", policy.dead_queue)
        set_value(policy, b"mail", b"dead-queue", b"lost:{queue}:{queue}")
        self.assertEqual(b"lost:mail:mail", policy.dead_queue)

    def test_later_setting(self) -> None:
        """What a later version sets changes nothing here."""
        policy = QueuePolicy(b"q")
        set_value(policy, b"q", b"priority", b"7")
        self.assertEqual(0, policy.max_deliveries)

    @given(st.integers(0, 10**15 - 1))
    def test_thousandths(self, milli: int) -> None:
        """A number is read as it is shown."""
        self.assertEqual(milli, thousandths(show_thousandths(milli)))
