"""What clients may change in the table of policies, and what a change puts in force."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from disque_tx.core.policies.policies import PATTERNS_MAX, Policies
from disque_tx.core.tables.policytable import PolicyTable
from disque_tx.core.tables.registers import DELETION_KEPT_S
from disque_tx.errors import CommandError
from disque_tx.messages.tables import Register

ME = b"a" * 40
NOW_S = 10_000_000


class RuleCase(SynchronousTestCase):
    """An empty table."""

    def setUp(self) -> None:
        self.policies = Policies()
        self.table = PolicyTable(self.policies)

    def set(self, pattern: bytes, *words: bytes) -> list[Register]:
        """Give a pattern settings."""
        pairs = list(zip(words[::2], words[1::2], strict=True))
        changes = self.table.plan_set(pattern, pairs, ME)
        self.table.apply(changes, NOW_S)
        return changes

    def refused(self, pattern: bytes, *words: bytes) -> str:
        """Why these settings cannot be given."""
        return str(self.assertRaises(CommandError, self.set, pattern, *words).text)


class SetTests(RuleCase):
    """Settings of a pattern."""

    def test_together(self) -> None:
        """Several settings take effect together or not at all."""
        self.refused(b"q", b"ttl", b"5", b"retry", b"x")
        self.assertIsNone(self.policies.of(b"q"))
        changes = self.set(b"q", b"TTL", b"5", b"retry", b"1", b"ttl", b"6")
        self.assertEqual(1, len({change.counter for change in changes}))
        self.assertEqual({b"ttl": b"6", b"retry": b"1"}, self.policies.values(b"q"))

    def test_patterns_bounded(self) -> None:
        """The table does not grow forever; patterns that are there can be changed."""
        registers = [Register(b"%d" % n, b"ttl", b"1", 1, ME) for n in range(PATTERNS_MAX)]
        self.table.merge(registers, NOW_S)
        self.assertIn(f"There are {PATTERNS_MAX} patterns", self.refused(b"q", b"ttl", b"1"))
        self.set(b"1", b"retry", b"1")

    def test_unsaved(self) -> None:
        """What was taken from another node is to be saved, and stays so until it is, also when
        what comes later is known already; a file that is read needs no saving."""
        register = Register(b"q", b"ttl", b"5", 1, ME)
        self.assertFalse(self.table.unsaved)
        self.assertTrue(self.table.merge([register], NOW_S))
        self.assertEqual((True, 1), (self.table.unsaved, self.table.received))
        self.assertFalse(self.table.merge([register], NOW_S))
        self.assertEqual((True, 1), (self.table.unsaved, self.table.received))
        self.table.unsaved = False
        self.assertFalse(self.table.merge([register], NOW_S))
        self.assertFalse(self.table.unsaved)
        self.setUp()
        self.table.load([register], 7, NOW_S)
        self.assertEqual((False, 0), (self.table.unsaved, self.table.received))
        self.assertEqual({b"ttl": b"5"}, self.policies.values(b"q"))

    def test_registers_bounded(self) -> None:
        """Deletions are counted, too."""
        deleted = [Register(b"q", b"%d" % n, b"", 1, ME, NOW_S) for n in range(100)]
        self.table.registers_max = 100
        self.table.merge(deleted, NOW_S)
        text = self.refused(b"q", b"ttl", b"1")
        self.assertIn("holds 100 settings already", text)

    def test_revert(self) -> None:
        """A change that could not be saved is as if it had not been made."""
        self.set(b"q", b"ttl", b"5")
        digest = self.table.registers.digest
        changes = self.table.plan_set(b"q", [(b"ttl", b"6"), (b"retry", b"1")], ME)
        before = self.table.apply(changes, NOW_S)
        self.table.revert(before)
        self.assertEqual({b"ttl": b"5"}, self.policies.values(b"q"))
        self.assertEqual(digest, self.table.registers.digest)


class ChainTests(RuleCase):
    """Dead letters that would move in a circle."""

    def test_itself(self) -> None:
        """A queue is not its own queue of dead letters."""
        for value in (b"a", b"{queue}"):
            text = self.refused(b"a", b"dead-queue", value)
            self.assertEqual("Policy setting 'dead-queue' goes round: a -> a", text)

    def test_circle(self) -> None:
        """A circle is refused where it is closed, with the way it takes."""
        self.set(b"a", b"dead-queue", b"b")
        self.set(b"b*", b"dead-queue", b"c")
        text = self.refused(b"c", b"dead-queue", b"a")
        self.assertEqual("Policy setting 'dead-queue' goes round: c -> a -> b -> c", text)

    def test_end(self) -> None:
        """A queue of dead letters may have one itself, and a pattern may match its own."""
        self.set(b"*", b"dead-queue", b"dead")
        self.set(b"a", b"dead-queue", b"b")
        self.set(b"b", b"dead-queue", b"")
        self.set(b"c", b"dead-queue", b"a")


class DeleteTests(RuleCase):
    """Settings that go."""

    def delete(self, *words: bytes) -> int:
        """How many settings went."""
        changes = self.table.plan_del(words[0], list(words[1:]), ME, NOW_S)
        self.table.apply(changes, NOW_S)
        return len(changes)

    def test_named(self) -> None:
        """Settings are deleted by name, in any case; unknown ones are not counted."""
        self.set(b"q", b"ttl", b"5", b"retry", b"1")
        self.assertEqual(1, self.delete(b"q", b"TTL", b"hue", b"ttl"))
        self.assertEqual({b"retry": b"1"}, self.policies.values(b"q"))

    def test_all(self) -> None:
        """Without a name all settings go; what was deleted is not deleted again."""
        self.set(b"q", b"ttl", b"5", b"retry", b"1")
        self.assertEqual(2, self.delete(b"q"))
        self.assertEqual(0, self.delete(b"q"))
        self.assertFalse(self.policies.active)

    def test_unknown_setting(self) -> None:
        """What a later version has set can be deleted."""
        self.table.merge([Register(b"q", b"hue", b"7", 1, ME)], NOW_S)
        self.assertEqual(1, self.delete(b"q", b"hue"))

    def test_clear(self) -> None:
        """A node that leaves its cluster takes none of its policies along, nor has them again
        after its next start: that they are gone is to be saved."""
        self.set(b"q", b"ttl", b"5", b"retry", b"1")
        self.table.unsaved = False
        self.table.clear()
        self.assertEqual((0, False), (len(self.table.registers), self.policies.active))
        self.assertTrue(self.table.unsaved)

    def test_loaded(self) -> None:
        """A table goes on counting from where its file ends, with the generation in it, or none."""
        for generation in ([2], []):
            self.table.load([Register(b"q", b"ttl", b"5", 3, ME)], 7, NOW_S, *generation)
            self.assertEqual(sum(generation), self.table.registers.generation)
            self.assertEqual(8, self.table.registers.next_counter())
            self.assertEqual({b"ttl": b"5"}, self.policies.values(b"q"))
            self.table.clear()

    def test_dropped_deletions(self) -> None:
        """That a deletion was dropped is to be saved; where none was, there is nothing to save."""
        deletion = Register(b"q", b"ttl", b"", 1, ME, NOW_S)
        self.table.merge([deletion], NOW_S)
        self.table.unsaved = False
        self.table.drop_old(NOW_S + DELETION_KEPT_S - 1)
        self.assertEqual((1, False), (len(self.table.registers), self.table.unsaved))
        self.table.drop_old(NOW_S + DELETION_KEPT_S)
        self.assertEqual((0, True), (len(self.table.registers), self.table.unsaved))


class CopyTests(RuleCase):
    """Copies of jobs that would come back."""

    def test_itself(self) -> None:
        """A queue is not copied to itself, nor the queues of a pattern to one of them."""
        for pattern in (b"a", b"*", b"[ab]"):
            text = self.refused(pattern, b"copy-to", b"z a")
            self.assertTrue(text.startswith("Policy setting 'copy-to' goes round: "), text)

    def test_circle(self) -> None:
        """A circle is refused where it is closed, with the way it takes."""
        self.set(b"a", b"copy-to", b"x b")
        self.set(b"b*", b"copy-to", b"c")
        text = self.refused(b"c", b"copy-to", b"y a")
        self.assertEqual("Policy setting 'copy-to' goes round: c -> a -> b -> c", text)
        self.set(b"c", b"copy-to", b"y")

    def test_many(self) -> None:
        """A table whose copies lead everywhere is not followed forever."""
        for number in range(40):
            names = b" ".join(b"q%d" % (number * 16 + n + 1) for n in range(16))
            self.set(b"q%d" % number, b"copy-to", names)
        self.set(b"zz", b"copy-to", b"q0")
