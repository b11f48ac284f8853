"""Questions to several nodes, some of which may be of another version."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from twisted.trial.unittest import SynchronousTestCase

from disque_tx.commands.base.values import Error
from disque_tx.errors import CommandError
from disque_tx.protocols.http.server.asking import CLUSTER, ask
from disque_tx.protocols.http.server.exchange import Exchange

NEWER, OLDER = b"a" * 40, b"b" * 40


class AskTests(SynchronousTestCase):
    """What two nodes answer."""

    def asked(self, line: bytes) -> Any:
        """Ask them; the second one answers with this error."""

        async def call(*_words: bytes) -> dict[bytes, Any]:
            return {b"nodes-missing": [], b"answers": [(NEWER, [1]), (OLDER, Error(line))]}

        exchange = SimpleNamespace(call=call, host=SimpleNamespace(processes=None))
        asking = ask(cast(Exchange, exchange), CLUSTER, b"NEW")
        try:
            asking.send(None)
        except StopIteration as done:
            return done.value
        raise AssertionError("It waits.")

    def test_unknown_question(self) -> None:
        """A node that does not know the question yet is missing, and the others count; so a page
        of the console works while a cluster is upgraded node by node."""
        found = self.asked(b"ERR ASK knows no such question, or not with so many words")
        self.assertEqual(({NEWER: [1]}, [OLDER]), (found.answers, found.missing))

    def test_refused(self) -> None:
        """Any other error is one of the request."""
        error = self.assertRaises(CommandError, self.asked, b"OOM no memory")
        self.assertEqual("OOM", error.code)
