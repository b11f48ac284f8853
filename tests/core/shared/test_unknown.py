"""Settings that this version does not know: kept for those that do, up to a bound."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from disque_tx.core.shared.policies import Policies
from disque_tx.core.shared.rules import PolicyTable
from disque_tx.core.shared.unknown import SENDER_MAX, UNKNOWN_MAX
from disque_tx.tablemessages import Register
from tests.core.peerbench import B, C

NOW_S = 10_000_000


def foreign(number: int, name: bytes = b"hue") -> Register:
    """A setting of a later version."""
    return Register(b"%06d" % number, name, b"7", 1, B)


class UnknownTests(SynchronousTestCase):
    """A table of policies."""

    def setUp(self) -> None:
        self.policies = Policies()
        self.table = PolicyTable(self.policies)

    def take(self, sender: bytes, *registers: Register) -> bool:
        """Whether it was news."""
        return self.table.merge(list(registers), NOW_S, sender)

    def test_kept(self) -> None:
        """A few of them are kept, so that a node that is upgraded has them at once."""
        self.assertTrue(self.take(B, foreign(1), foreign(2)))
        self.assertEqual((2, 2), (len(self.table.registers), len(self.table.unknown)))

    def test_one_sender(self) -> None:
        """A member that floods the table pushes out its own oldest ones, and not what others have
        sent; and is not asked for more at once."""
        self.take(C, foreign(999_999))
        self.take(B, foreign(0, b"ttl"))
        for number in range(1, SENDER_MAX + 1):
            self.assertTrue(self.take(B, foreign(number)))
        self.assertFalse(self.take(B, foreign(SENDER_MAX + 1)))
        registers = self.table.registers
        self.assertEqual(SENDER_MAX + 2, len(registers))
        self.assertIsNone(registers.get(b"000001", b"hue"))
        self.assertIsNotNone(registers.get(b"000002", b"hue"))
        self.assertIsNotNone(registers.get(b"999999", b"hue"))
        self.assertIsNotNone(registers.get(b"000000", b"ttl"))
        self.assertEqual(1, self.table.unknown.dropped)

    def test_many_senders(self) -> None:
        """Members that flood the table together cannot fill it either: what is known has room."""
        senders = [b"%040d" % number for number in range(UNKNOWN_MAX // SENDER_MAX + 1)]
        number = 0
        for sender in senders:
            registers = [foreign(number + more) for more in range(SENDER_MAX)]
            self.take(sender, *registers)
            number += SENDER_MAX
        self.assertEqual(UNKNOWN_MAX, len(self.table.registers))
        self.assertIsNone(self.table.registers.get(b"000000", b"hue"))
        self.assertTrue(self.take(B, Register(b"q", b"ttl", b"5", 1, B)))
        self.assertEqual(UNKNOWN_MAX + 1, len(self.table.registers))

    def test_known_by_now(self) -> None:
        """A setting whose value was no value, and is one now, is not pushed out any more, whether
        another node or a client has set it."""
        for number, sender in ((0, B), (1, C)):
            self.take(sender, Register(b"%06d" % number, b"ttl", b"?", 1, B))
        self.take(B, Register(b"000000", b"ttl", b"5", 2, B))
        changes = self.table.plan_set(b"000001", [(b"ttl", b"6")], B)
        self.table.apply(changes, NOW_S)
        self.take(B, *[foreign(number) for number in range(2, SENDER_MAX + 10)])
        self.take(C, *[foreign(10_000 + number) for number in range(SENDER_MAX + 10)])
        self.assertEqual({b"ttl": b"5"}, self.policies.values(b"000000"))
        self.assertEqual({b"ttl": b"6"}, self.policies.values(b"000001"))

    def test_from_file(self) -> None:
        """Those in the file count as sent by the nodes that made them."""
        self.table.load([foreign(number) for number in range(SENDER_MAX + 5)], 1, NOW_S)
        self.assertEqual(SENDER_MAX, len(self.table.unknown))

    def test_clear(self) -> None:
        """A node that leaves its cluster begins to count anew."""
        self.take(B, foreign(1))
        self.table.clear()
        self.assertEqual(0, len(self.table.unknown))
