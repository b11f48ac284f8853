"""QPOLICY at a single node; the exact replies are in ``tests/vectors/own/policies.txt``."""

from __future__ import annotations

from disque_tx.commands.base.values import Error
from disque_tx.commands.server.cluster import cluster
from disque_tx.commands.server.info import info
from disque_tx.commands.tables.policies import qpolicy
from disque_tx.core.tables.registers import COUNTER_MAX
from disque_tx.errors import CommandError
from tests.commands.desk import OK, DeskCase


class PolicyTests(DeskCase):
    """QPOLICY."""

    def test_saved_before_answer(self) -> None:
        """A change is saved before the client is told that it is made; what changes nothing is not
        written."""
        self.assertEqual(OK, self.call(qpolicy, b"QPOLICY", b"SET", b"q", b"ttl", b"5"))
        self.assertEqual(["save policies"], self.control.performed)
        self.assertEqual(0, self.call(qpolicy, b"QPOLICY", b"DEL", b"x"))
        self.assertEqual(1, len(self.control.performed))
        self.assertEqual(1, self.call(qpolicy, b"QPOLICY", b"DEL", b"q"))
        self.assertEqual(2, len(self.control.performed))

    def test_get(self) -> None:
        """QPOLICY GET says for each setting of a queue its value, and the pattern that it comes
        from, in the order of the table of settings."""
        self.call(qpolicy, b"QPOLICY", b"SET", b"q*", b"retry", b"7", b"ttl", b"5")
        self.call(qpolicy, b"QPOLICY", b"SET", b"qa", b"retry", b"9", b"delay", b"0")
        expected = [[b"ttl", b"5", b"q*"], [b"retry", b"9", b"qa"], [b"delay", b"0", b"qa"]]
        self.assertEqual(expected, self.call(qpolicy, b"QPOLICY", b"GET", b"qa"))
        self.assertEqual([], self.call(qpolicy, b"QPOLICY", b"GET", b"other"))

    def test_number_of_words(self) -> None:
        """A word too many or too few is refused, and never does half of what was meant."""
        for words, missing, more in (
            ([b"SET", b"q", b"ttl", b"5"], 1, []),
            ([b"LIST"], 0, [b"q", b"x"]),
            ([b"GET", b"q"], 1, [b"x"]),
            ([b"DEL", b"q"], 1, []),
            ([b"REPAIR"], 0, [b"x"]),
        ):
            self.assertNotIsInstance(self.call(qpolicy, b"QPOLICY", *words), Error)
            if missing:
                self.assertIsInstance(self.call(qpolicy, b"QPOLICY", *words[:-1]), Error, words)
            if more:
                self.assertIsInstance(self.call(qpolicy, b"QPOLICY", *words, *more), Error, words)

    def test_not_saved(self) -> None:
        """A change that cannot be saved is refused with the reason, and not in force."""
        self.call(qpolicy, b"QPOLICY", b"SET", b"q", b"ttl", b"5")
        text = "The policies can't be saved: No space left on device"
        self.control.refusal = CommandError("ERR", text)
        line = b"ERR The policies can't be saved: No space left on device"
        for words in ([b"SET", b"q", b"ttl", b"6", b"retry", b"1"], [b"DEL", b"q"]):
            self.assert_refused(line, qpolicy, b"QPOLICY", *words)
        listed = self.call(qpolicy, b"QPOLICY", b"LIST")
        self.assertEqual([[b"q", {b"ttl": b"5"}]], listed)

    def test_repair(self) -> None:
        """A repaired table is saved before the answer, and can be changed again."""
        self.call(qpolicy, b"QPOLICY", b"SET", b"q", b"ttl", b"5", b"retry", b"1")
        self.call(qpolicy, b"QPOLICY", b"DEL", b"q", b"retry")
        self.node.policy_table.registers.begin(0, COUNTER_MAX)
        words = [b"QPOLICY", b"SET", b"q", b"ttl", b"6"]
        self.assert_refused(b"ERR The counter of the table is at its end", qpolicy, *words)
        self.assertEqual(1, self.call(qpolicy, b"QPOLICY", b"REPAIR"))
        self.assertEqual(["save policies"] * 3, self.control.performed)
        self.assertEqual(OK, self.call(qpolicy, *words))
        self.assertEqual([[b"q", {b"ttl": b"6"}]], self.call(qpolicy, b"QPOLICY", b"LIST"))

    def test_repair_not_saved(self) -> None:
        """A repair that cannot be saved changes nothing, neither here nor for older nodes."""
        self.call(qpolicy, b"QPOLICY", b"SET", b"q", b"ttl", b"5")
        registers = self.node.policy_table.registers
        before = (registers.generation, registers.greatest, registers.digest)
        self.control.refusal = CommandError("ERR", "The policies can't be saved: full")
        line = b"ERR The policies can't be saved: full"
        self.assert_refused(line, qpolicy, b"QPOLICY", b"REPAIR")
        self.assertEqual(before, (registers.generation, registers.greatest, registers.digest))

    def test_standing_aside(self) -> None:
        """Of two processes with one node ID only one changes policies: their changes could not be
        told apart."""
        self.membership.identity.suspended = True
        answer = self.call(qpolicy, b"QPOLICY", b"SET", b"q", b"ttl", b"5")
        assert isinstance(answer, Error)
        self.assertIn(b"LEAVING Another process", answer.line)
        self.assertEqual([], self.call(qpolicy, b"QPOLICY", b"LIST"))

    def test_long_pattern(self) -> None:
        """A megabyte of pattern is refused with a short error."""
        for words in ([b"ttl", b"1"], [b"x" * 1_000_000, b"1"]):
            answer = self.call(qpolicy, b"QPOLICY", b"SET", b"*" * 1_000_000, *words)
            assert isinstance(answer, Error)
            self.assertLess(len(answer.line), 200)

    def test_reset(self) -> None:
        """A node that is reset takes none of its policies to the cluster that it joins next."""
        self.call(qpolicy, b"QPOLICY", b"SET", b"q", b"ttl", b"5")
        self.assertEqual(OK, self.call(cluster, b"CLUSTER", b"RESET"))
        self.assertEqual([], self.call(qpolicy, b"QPOLICY", b"LIST"))
        self.assertEqual(["save policies"] * 2, self.control.performed)

    def test_info(self) -> None:
        """Monitoring can compare the tables of all nodes by one field."""
        self.call(qpolicy, b"QPOLICY", b"SET", b"q", b"ttl", b"5")
        text = self.call(info, b"INFO", b"policies")
        assert isinstance(text, bytes)
        fields = dict(line.split(b":") for line in text.split(b"\r\n")[1:-1])
        self.assertEqual(
            (b"1", b"1"), (fields[b"policies_patterns"], fields[b"policies_registers"])
        )
        digest = b"%016x" % self.node.policy_table.registers.digest
        self.assertEqual(digest, fields[b"policies_digest"])
