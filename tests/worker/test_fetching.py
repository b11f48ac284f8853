"""Fetching jobs from several queues, and keeping those that were delivered."""

from __future__ import annotations

from typing import Any

from twisted.internet.defer import CancelledError, Deferred
from twisted.trial.unittest import SynchronousTestCase

from disque_tx.client import Refused
from disque_tx.worker.base.errors import BadHandlers
from disque_tx.worker.fetching import Fair, Order, Priority, fetch, order_of
from disque_tx.worker.remote.commands import control_queue
from disque_tx.worker.tasks.routes import RouteTable, routes_of
from tests.forwardclock import ForwardClock
from tests.worker.memory import NODE, MemoryClient, lost


class HoldingClient(MemoryClient):
    """Requests for jobs of ``b`` have no reply until the test gives one."""

    def __init__(self, clock: ForwardClock) -> None:
        super().__init__(clock)
        self.held: Deferred[Any] = Deferred()

    def take(self, *queues: str, **options: Any) -> Deferred[Any]:
        return self.held if queues == ("b",) else super().take(*queues, **options)


class FetchTests(SynchronousTestCase):
    """With priorities, each queue has a request of its own."""

    def setUp(self) -> None:
        self.client = HoldingClient(ForwardClock())

    def fetching(self) -> Deferred[list[Any]]:
        """A fetch that waits for the second queue."""
        return Deferred.fromCoroutine(fetch(self.client, Priority(["a", "b"]), 3))

    def test_stopped(self) -> None:
        """A worker that stops must return delivered jobs to their queue, so it has to receive
        them."""
        job_id = self.client.put("a")
        fetching = self.fetching()
        fetching.cancel()
        self.assertEqual([job_id], [job.id for job in self.successResultOf(fetching)])

    def test_failed(self) -> None:
        """Delivered jobs are also received when the second request fails."""
        job_id = self.client.put("a")
        fetching = self.fetching()
        self.client.held.errback(lost("GETJOB"))
        self.assertEqual([job_id], [job.id for job in self.successResultOf(fetching)])

    def test_nothing_yet(self) -> None:
        """Without delivered jobs, the cancellation or the error is raised."""
        fetching = self.fetching()
        fetching.cancel()
        self.failureResultOf(fetching, CancelledError)
        self.client = HoldingClient(ForwardClock())
        fetching = self.fetching()
        self.client.held.errback(lost("GETJOB"))
        self.failureResultOf(fetching, type(lost("GETJOB")))


class CountTests(SynchronousTestCase):
    """How many jobs are taken, of queues that have their own requests."""

    def setUp(self) -> None:
        self.client = MemoryClient(ForwardClock())
        for queue in "aabb":
            self.client.put(queue)

    def fetched(self, count: int) -> list[str]:
        """The queues of the jobs that are taken."""
        fetching = Deferred.fromCoroutine(fetch(self.client, Priority(["a", "b"]), count))
        return [job.job.queue for job in self.successResultOf(fetching)]

    def test_enough(self) -> None:
        """When the first queue has enough, the second one is not asked."""
        self.assertEqual(["a", "a"], self.fetched(2))
        self.assertEqual(1, len(self.client.times("GETJOB")))

    def test_rest(self) -> None:
        """The second queue gives what is missing, and no more: nobody could do it."""
        self.assertEqual(["a", "a", "b"], self.fetched(3))
        self.assertEqual(["b"], self.fetched(3))


class SharedTests(SynchronousTestCase):
    """Fair shares are left to nodes that can make them."""

    def setUp(self) -> None:
        self.client = MemoryClient(ForwardClock())
        self.client.knows_match = True

    def fetched(self, order: Order, count: int = 9) -> list[str]:
        """Queue after queue of the jobs that a request brings."""
        fetching = Deferred.fromCoroutine(fetch(self.client, order, count))
        return [job.job.queue for job in self.successResultOf(fetching)]

    def put(self, *queues: str) -> None:
        """Add a job to each."""
        for queue in queues:
            self.client.put(queue)

    def test_node_chooses(self) -> None:
        """The quiet queue comes first, although the busy one was named first."""
        self.put("busy", "busy", "quiet")
        self.fetched(Priority(["busy"]), 1)
        self.assertEqual(["quiet"], self.fetched(Fair(["busy", "quiet"]), 1))

    def test_pattern(self) -> None:
        """A pattern brings jobs of all queues that match, in every order."""
        for order in (
            Fair(["mail:*"]),
            Priority(["sms", "mail:*"]),
            Fair(["mail:*"], {"mail:*": 2}),
        ):
            self.put("mail:a", "mail:b", "other")
            self.assertEqual({"mail:a", "mail:b"}, set(self.fetched(order)))

    def test_commands_of_others(self) -> None:
        """A pattern for all queues leaves the commands to other workers alone."""
        self.put("mail", control_queue("6f1c07bd7d3b2a55"))
        for order in (Fair(["*"]), Priority(["mail", "*"])):
            self.put("mail")
            self.assertEqual({"mail"}, set(self.fetched(order)))

    def test_names_are_names(self) -> None:
        """The name of a queue brings no jobs of others, whatever characters it has."""
        self.put("a\\b", "ab")
        self.assertEqual(["a\\b"], self.fetched(Fair(["a\\b"])))

    def test_original(self) -> None:
        """With a node of the original the worker makes the shares, and does not ask twice each
        time."""
        self.client.knows_match = False
        order = Fair(["a", "b"])
        for _ in range(3):
            self.put("a", "b")
            self.assertEqual({"a", "b"}, set(self.fetched(order)))
        self.assertEqual(4, len(self.client.times("GETJOB")))

    def test_asked_again(self) -> None:
        """After a while nodes are asked again: the original may be gone."""
        order = Fair(["a"])
        order.refused()
        answers = [order.shared() for _ in range(1_001)]
        self.assertEqual([(), ("a",)], [answers[0], answers[-1]])

    def test_many_queues(self) -> None:
        """More queues than one request may have are shared by the worker."""
        self.assertEqual((), Fair([f"q{number}" for number in range(101)]).shared())

    def test_other_errors(self) -> None:
        """Any other error is an error."""
        self.client.broken = lost
        fetching = Deferred.fromCoroutine(fetch(self.client, Fair(["a"]), 1))
        self.failureResultOf(fetching, type(lost("GETJOB")))

    def test_refused(self) -> None:
        """A node that refuses for a reason of its own is not an original: nothing else is tried
        at once, and it goes on to make the shares."""
        refusals = [Refused("GETJOB", NODE, "LEAVING", "this node is leaving the cluster")]
        self.client.broken = lambda command: refusals.pop() if refusals else None
        order = Fair(["a"])
        self.put("a")
        fetching = Deferred.fromCoroutine(fetch(self.client, order, 1))
        error = self.failureResultOf(fetching, Refused).value
        self.assertIn("this node is leaving", str(error))
        self.assertEqual(1, len(self.client.times("GETJOB")))
        self.assertEqual(("a",), order.shared())


class RouteTests(SynchronousTestCase):
    """Which handler does the jobs of which queue."""

    def table(self, *queues: str) -> RouteTable:
        """A table with a route for each."""
        return RouteTable(routes_of({queue: lambda job: None for queue in queues}))

    def test_most_specific(self) -> None:
        """A name goes before patterns, a longer pattern before a shorter one."""
        table = self.table("*", "mail:*", "mail:a")
        for queue, expected in (("mail:a", "mail:a"), ("mail:b", "mail:*"), ("x", "*")):
            self.assertIs(table.get(expected), table.get(queue), queue)

    def test_nothing(self) -> None:
        """A queue without a handler is found out, not guessed."""
        self.assertIsNone(self.table("mail:*").get("sms"))
        self.assertRaises(BadHandlers, self.table("mail:*").route, "sms")

    def test_only(self) -> None:
        """Names and patterns choose among the handlers."""
        table = self.table("mail:a", "mail:b", "sms:*")
        for queues, expected in (
            (None, ["mail:a", "mail:b", "sms:*"]),
            (["mail:*"], ["mail:a", "mail:b"]),
            (["sms:x", "mail:b"], ["sms:x", "mail:b"]),
            (["sms:*"], ["sms:*"]),
            (["sms:1*"], ["sms:1*"]),
        ):
            self.assertEqual(expected, table.only(queues).queues)
        self.assertRaises(BadHandlers, table.only, ["mail:a", "fax"])
        self.assertRaises(BadHandlers, table.only, ["fax:*"])
        self.assertRaises(BadHandlers, table.only, [])


class WeightTests(SynchronousTestCase):
    """How much more often a queue comes first."""

    def test_limits(self) -> None:
        """Weights are from 1 to 100; what is beyond is refused, whichever queue it is of."""
        Fair(["a", "b"], {"a": 1, "b": 100})
        for weights in ({"a": 0}, {"b": 101}, {"a": 100, "b": -1}):
            error = self.assertRaises(BadHandlers, Fair, ["a", "b"], weights)
            self.assertEqual("The weight of a queue is a number from 1 to 100.", str(error))

    def test_share(self) -> None:
        """A queue comes first as often as its weight says."""
        order = Fair(["a", "b", "c"], {"a": 3, "c": 2})
        firsts = [order.waits()[0] for _ in range(12)]
        self.assertEqual({"a": 6, "b": 2, "c": 4}, {name: firsts.count(name) for name in "abc"})
        self.assertEqual([], order.tries())

    def test_orders(self) -> None:
        """There are two orders; weights are for the fair one."""
        self.assertEqual([("a",), ("b",)], order_of("priority", ["a", "b"], None).tries())
        self.assertEqual([], order_of("priority", ["a"], None).tries())
        self.assertEqual(("a", "b"), order_of("priority", ["a", "b"], {}).waits())
        self.assertRaises(BadHandlers, order_of, "priority", ["a"], {"a": 2})
        order = order_of("fair", ["a", "b"], {"a": 2})
        firsts = [order.waits()[0] for _ in range(6)]
        self.assertEqual((4, 2), (firsts.count("a"), firsts.count("b")))
        error = self.assertRaises(BadHandlers, order_of, "random", ["a"], None)
        expected = "The order is 'priority', or 'fair', for which there may be weights."
        self.assertEqual(expected, str(error))

    def test_left_to_nodes(self) -> None:
        """A node chooses among up to 100 patterns; one that does not know these is asked again
        after a thousand requests."""
        names = [f"q{number}" for number in range(101)]
        self.assertEqual(100, len(Fair(names[:100]).shared()))
        self.assertEqual((), Fair(names).shared())
        self.assertEqual((), Fair(["a"], {"a": 2}).shared())
        order = Fair(["a"])
        self.assertEqual(("a",), order.shared())
        order.refused()
        asked = [bool(order.shared()) for _ in range(1_000)]
        self.assertEqual([False] * 999 + [True], asked)
