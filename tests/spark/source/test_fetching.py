"""GETJOB at many nodes, within limits."""

from __future__ import annotations

from disque_tx.client.addresses import Address
from disque_tx.client.errors import AuthenticationRefused, CannotConnect
from disque_tx.client.requests import encoding as requests
from disque_tx.spark.source.fetching import Fetching, Limit
from tests.client.scripted import HANG_UP, NO_ANSWER, ScriptedNode, array, bulk
from tests.spark.nodes import IDS, NodesTestCase, address_of, fetched

_NONE = b"*-1\r\n"
_LOGGER = "disque_tx.spark.source.fetching"
_MANY = [f"D-aaaaaaaa-{number:024d}-05a1" for number in range(2000)]


def counts(node: ScriptedNode) -> list[int]:
    """How many jobs the node was asked for, each time."""
    asked = [words for words in node.requests if words[0] == b"GETJOB"]
    return [int(words[words.index(b"COUNT") + 1]) for words in asked]


def large(*ids: str) -> bytes:
    """A reply to GETJOB with jobs of 1000 bytes."""
    counters = (bulk("nacks"), b":0\r\n", bulk("additional-deliveries"), b":0\r\n")
    return array(*[array(bulk("q"), bulk(job), bulk(b"x" * 1000), *counters) for job in ids])


class FetchingTests(NodesTestCase):
    """One or more scripted nodes."""

    def ids(
        self, fetching: Fetching, jobs: int, size: int = 1 << 30, done: set[str] | None = None
    ) -> dict[Address, list[str]]:
        """Node → IDs."""
        found = fetching.fetch(Limit(jobs, size), 0, done or set())
        return {node: list(jobs.ids) for node, jobs in found.items()}

    def test_delivered_twice(self) -> None:
        """A job that is delivered twice while a batch is fetched, from one node or two, is in the
        batch once, and not acknowledged."""
        first = self.node(GETJOB=[fetched(*[IDS[0]] * 16), fetched(*IDS[:2])])
        second = self.node(GETJOB=fetched(*IDS[1:3]))
        found = self.ids(self.fetching(first, second), 2000)
        self.assertEqual({address_of(first): IDS[:2], address_of(second): IDS[2:3]}, found)
        self.assertNotIn("ACKJOB", first.commands() + second.commands())

    def test_delivered_again(self) -> None:
        """A job that is stored already is left out, and acknowledged at the node that delivered
        it."""
        node = self.node(GETJOB=fetched(*IDS[:3]), ACKJOB=b":1\r\n")
        found = self.ids(self.fetching(node), 100, done={IDS[0]})
        self.assertEqual({address_of(node): IDS[1:3]}, found)
        self.assertEqual([b"ACKJOB", IDS[0].encode()], node.requests[-1])

    def test_jobs(self) -> None:
        """The nodes share the maximum size of a batch; what one does not have comes from those
        that have more."""
        rich = self.node(GETJOB=[fetched(*_MANY[:4]), fetched(*_MANY[4:10])])
        poor = [self.node(GETJOB=_NONE) for _ in range(2)]
        found = self.ids(self.fetching(rich, *poor), 10)
        self.assertEqual({address_of(rich): _MANY[:10]}, found)
        self.assertEqual(([4, 6], [3], [3]), (counts(rich), counts(poor[0]), counts(poor[1])))

    def test_few(self) -> None:
        """No node is asked for more jobs than the batch may have, even if there are more nodes."""
        nodes = [self.node(GETJOB=_NONE), self.node(GETJOB=fetched(IDS[0]))]
        self.assertEqual({address_of(nodes[1]): IDS[:1]}, self.ids(self.fetching(*nodes), 1))
        self.assertEqual(([1], [1]), (counts(nodes[0]), counts(nodes[1])))

    def test_bytes(self) -> None:
        """A batch has no more bytes than it may have, when its bodies are of about one size: the
        requests ask for few jobs first, and then for as many as fit."""
        replies = [large(*_MANY[:16]), large(*_MANY[16:80]), large(*_MANY[80:100]), large("no")]
        node = self.node(GETJOB=replies)
        found = self.ids(self.fetching(node), 2000, size=100_000)
        self.assertEqual(100, len(found[address_of(node)]))
        self.assertEqual([16, 64, 20], counts(node))

    def test_at_once(self) -> None:
        """A node that is slow does not keep the others waiting: all are asked before one has
        answered."""
        slow, quick = self.node(GETJOB=NO_ANSWER), self.node(GETJOB=fetched(IDS[0]))
        fetching = self.fetching(slow, quick, timeout_s=0.1)
        with self.assertLogs(_LOGGER, "WARNING"):
            found = self.ids(fetching, 10)
        self.assertEqual({address_of(quick): IDS[:1]}, found)

    def test_left_alone(self) -> None:
        """A node that cannot be reached is logged once, and left alone for longer and longer; when
        it is back, jobs are fetched from it as before."""
        shaky, alive = self.node(GETJOB=HANG_UP), self.node(GETJOB=_NONE)
        fetching = self.fetching(shaky, alive)
        asked = []
        with self.assertLogs(_LOGGER, "WARNING") as logged:
            for _ in range(20):
                before = shaky.connections
                self.ids(fetching, 5)
                asked.append(shaky.connections > before)
                self.time.s += 1.0
        self.assertEqual([0, 5, 15], [at for at, was in enumerate(asked) if was])
        self.assertEqual(1, len(logged.output))
        shaky.answer("GETJOB", fetched(IDS[0]))
        self.time.s += 60.0
        self.assertEqual({address_of(shaky): IDS[:1]}, self.ids(fetching, 5))
        shaky.answer("GETJOB", HANG_UP)
        with self.assertLogs(_LOGGER, "WARNING"):
            self.ids(fetching, 5)

    def test_all_down(self) -> None:
        """When no node can be reached, that is an error, each time."""
        node = self.node()
        node.close()
        fetching = self.fetching(node)
        with self.assertLogs(_LOGGER, "WARNING"):
            for _ in range(2):
                self.assertRaises(CannotConnect, self.ids, fetching, 5)
        with self.assertRaises(CannotConnect):
            fetching.ask_each(lambda node: node.call(requests.queue_length("q")))

    def test_lost_in_between(self) -> None:
        """The jobs that a node delivered before it was lost are in the batch."""
        node = self.node(GETJOB=[fetched(*_MANY[:16]), HANG_UP])
        self.assertEqual(16, len(self.ids(self.fetching(node), 100)[address_of(node)]))

    def test_leaving(self) -> None:
        """A node that leaves has no jobs to give; another refusal ends the query."""
        node = self.node(GETJOB=b"-LEAVING this node is leaving\r\n")
        self.assertEqual({}, self.ids(self.fetching(node), 5))
        node.answer("GETJOB", b"-NOAUTH Authentication required.\r\n")
        self.assertRaises(AuthenticationRefused, self.ids, self.fetching(node), 5)

    def test_kept(self) -> None:
        """What was delivered is returned with its body, also when one of the jobs is delivered
        again and left out."""
        node = self.node(GETJOB=fetched(*IDS[:3]), ACKJOB=b":1\r\n")
        found = self.fetching(node).fetch(Limit(5, 100), 3, {IDS[1]})[address_of(node)]
        job = {"queue": "q", "body": b"x", "nacks": 0, "additional_deliveries": 0}
        self.assertEqual([{"id": i, **job} for i in IDS[:3:2]], found.rows.to_pylist())
        self.assertEqual(2, found.size)

    def test_idle_connection(self) -> None:
        """A node that closed a connection, as it was idle for long, is not left alone."""
        node = self.node(QLEN=[b":5\r\n", HANG_UP, b":6\r\n"])
        fetching = self.fetching(node)
        for length in (5, 6):
            found = fetching.ask_each(lambda node: node.call(requests.queue_length("q")))
            self.assertEqual({address_of(node): length}, found)
