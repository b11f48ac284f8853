"""``disque --bigqueues``: how the longest queues of a node are found."""

from __future__ import annotations

from disque_tx.cli.modes.bigqueues import survey
from tests.client.blocking.test_session import SessionTestCase
from tests.client.scripted import ScriptedNode, array, bulk


def integer(number: int) -> bytes:
    """An integer reply."""
    return b":%d\r\n" % number


_UNKNOWN = b"-ERR unknown command 'QLIST'\r\n"


def stat(name: str, length: int) -> bytes:
    """The reply to QSTAT."""
    fields = {"name": bulk(name), "len": integer(length), "import-from": array()}
    for field in ("age", "idle", "blocked", "import-rate", "jobs-in", "jobs-out"):
        fields[field] = integer(0)
    fields["pause"] = bulk("none")
    return array(*[part for field, value in fields.items() for part in (bulk(field), value)])


class SurveyTests(SessionTestCase):
    """One node."""

    def test_original(self) -> None:
        """The queues of a node that cannot sort them are scanned, and the longest are kept."""
        node = ScriptedNode(
            QLIST=_UNKNOWN,
            QSCAN=array(bulk("0"), array(bulk("a"), bulk("b"), bulk("c"))),
            QSTAT=[stat("a", 2), stat("b", 5), stat("c", 3)],
        )
        self.addCleanup(node.close)
        seen: list[int] = []
        found = survey(self.client(node), 2, 3, seen.append)
        self.assertEqual((3, [(5, "b"), (3, "c")]), (found.queues, found.longest))
        self.assertEqual([1, 1, 1], seen)
