"""Which requests leave a line in the log, and what it says."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from disque_tx.commands.base.actions import Action
from disque_tx.commands.base.audit import audit_line, changes
from disque_tx.commands.base.values import ValueReplies
from disque_tx.core.base.client import Client


class AuditTests(SynchronousTestCase):
    """Requests that change how the node works."""

    def test_changes(self) -> None:
        """What only asks is no change: a log full of questions hides the answers."""
        for request in (
            b"config SET hz 10", b"pause q all", b"QPOLICY del p", b"qflush q", b"shutdown",
            b"cluster leaving yes", b"cluster forget x", b"schedule DEL s", b"debug flushall",
        ):  # fmt: skip
            words = request.split()
            self.assertTrue(changes(words[0].lower(), words), request)
        for request in (
            b"config GET hz", b"pause q state", b"qpolicy list", b"cluster leaving", b"pause q",
            b"cluster nodes", b"schedule list", b"schedule run s", b"client list", b"debug x",
        ):  # fmt: skip
            words = request.split()
            self.assertFalse(changes(words[0], words), request)

    def test_hostile(self) -> None:
        """No word of a client begins a new line in the log, or makes a long one."""
        client = Client(7, ValueReplies(), b"10.0.0.9:5000", 0)
        words = [b"qpolicy", b"set", b"a\n1:P # forged", b"retry", b"9" * 5_000]
        line = audit_line(b"qpolicy", client, words)
        start = r'Client 10.0.0.9:5000: QPOLICY set "a\n1:P # forged" retry "999'
        self.assertTrue(line.startswith(start), line)
        self.assertLess(len(line), 400)


class SizeTests(SynchronousTestCase):
    """What is kept of an action."""

    def test_cut(self) -> None:
        """Of a request 400 bytes are kept, and of a client's name 160: a thousand actions are a
        megabyte at most."""
        action = Action(1, b"pause", b"w" * 161, b"x" * 401, b"y" * 401)
        self.assertEqual((160, 400, 400), (len(action.who), len(action.what), len(action.refused)))
        whole = Action(1, b"pause", b"w" * 160, b"x" * 400)
        self.assertEqual((b"w" * 160, b"x" * 400, b""), (whole.who, whole.what, whole.refused))
        self.assertEqual(-1, whole.jobs.value)
