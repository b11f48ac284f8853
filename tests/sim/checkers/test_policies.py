"""The table of policies."""

from __future__ import annotations

from disque_tx.messages.tables import Register
from disque_tx.sim.checkers.policies import PoliciesKept, SamePolicies
from disque_tx.sim.stage.history import PolicyChange
from tests.sim.checkers.bench import HERE, CheckerCase


class PolicyTests(CheckerCase):
    """The table of policies."""

    def setUp(self) -> None:
        super().setUp()
        for machine in self.run_.machines:
            machine.start()

    def put(self, place: int, counter: int, deleted_s: int = 0) -> None:
        """A node gets a change."""
        process = self.run_.machines[place].process
        assert process is not None
        value = b"" if deleted_s else b"%d" % counter
        register = Register(b"p", b"ttl", value, counter, b"a" * 40, deleted_s)
        process.node.policy_table.merge([register], deleted_s)

    def answered(self, counter: int, value: bytes = b"1") -> None:
        """A client at the first node has the answer to a change."""
        change = PolicyChange(b"p", [b"ttl"], value, True, {b"ttl": counter}, HERE, 0)
        self.history.policies.append(change)

    def test_same(self) -> None:
        """A node with another table than the others breaks the promise."""
        tables = [n for n in range(len(self.run_.machines)) if self.run_.shape.has_own(n)]
        self.assertEqual(0, self.found(SamePolicies()))
        self.put(tables[0], 1)
        self.assertEqual(len(tables) - 1, self.found(SamePolicies()))
        for place in tables[1:]:
            self.put(place, 1)
        self.assertEqual(0, self.found(SamePolicies()))

    def test_kept(self) -> None:
        """A change that is lost, or an older one in its place, breaks the promise; a later one does
        not."""
        self.answered(2)
        self.assertEqual(1, self.found(PoliciesKept()))
        self.put(0, 1)
        self.assertEqual(1, self.found(PoliciesKept()))
        self.put(0, 3)
        self.assertEqual(0, self.found(PoliciesKept()))

    def test_deleted(self) -> None:
        """A deletion may have been dropped, but nothing older may be there again."""
        self.answered(2, b"")
        self.assertEqual(0, self.found(PoliciesKept()))
        self.put(0, 1)
        self.assertEqual(1, self.found(PoliciesKept()))

    def test_other_disk(self) -> None:
        """What was on a disk that does not exist any more may be lost."""
        self.answered(2)
        self.run_.machines[0].disk.wipe()
        self.assertEqual(0, self.found(PoliciesKept()))
