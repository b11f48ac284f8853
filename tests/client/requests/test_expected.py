"""What errors say about replies that no node sends."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from twisted.trial.unittest import SynchronousTestCase

from disque_tx.client.requests import adding, counting, policies, replies, schedules
from disque_tx.client.requests.replies import MalformedReply

_ROW: Final = [
    *(b"queued", 1, b"delayed", 2, b"backoff", 3, b"in-flight", 4, b"dead", 5),
    *(b"blocked-clients", 6, b"oldest-ms", 7, b"in-per-s", b"1.2.3", b"out-per-s", b"0"),
    *(b"nodes", 1, b"nodes-missing", []),
]
#: A parser, a reply that it does not take, and what it expected instead of which type.
_CASES: Final[list[tuple[Callable[[Any], Any], Any, str, str]]] = [
    (replies.integer, b"1", "a number", "bytes"),
    (replies.integer, True, "a number", "bool"),
    (replies.text, 1, "a string", "int"),
    (replies.decimal, b"x", "a number in decimal", "bytes"),
    (replies.decimal, b"1" * 21, "a number in decimal", "bytes"),
    (replies.job_id, b"D-1", "a job ID", "bytes"),
    (replies.array, {}, "an array", "dict"),
    (replies.fields, [b"a"], "names with values", "list"),
    (replies.jobs, [[b"q", b"D-1"]], "a job of 3 or 7 parts", "list"),
    (replies.jobs, [b"q"], "a job of 3 or 7 parts", "bytes"),
    (replies.descriptions, [b"0", [None]], "a job", "NoneType"),
    (replies.names, [b"0"], "a cursor and items", "list"),
    (replies.hello, [2, b"a", b"b"], "HELLO's version 1 with nodes", "list"),
    (replies.hello, [1, b"a"], "HELLO's version 1 with nodes", "list"),
    (replies.hello, [1, b"a", [b"b"]], "a node of 4 parts", "list"),
    (replies.cluster_nodes, b"a b c", "a line of 6 words", "bytes"),
    (replies.stat, [], "a field 'name'", "dict"),
    (counting.queue_counts("q").parse, _ROW, "a rate", "bytes"),
    (policies.policy_get("q").parse, [[b"ttl", b"5"]], "a row of 3", "list"),
    (policies.policy_list().parse, [[b"ttl"]], "a row of 2", "list"),
    (schedules.schedule_skip("s").parse, 0, "a time", "int"),
    (schedules.schedule_skip("s").parse, 1 << 62, "a time", "int"),
    (adding.add_once("q", "b", b"key").parse, [b"D-1"], "an ID, and whether it is new", "list"),
]


class ExpectedTests(SynchronousTestCase):
    """Errors that name a server which is no Disque node, or a newer one."""

    def test_all(self) -> None:
        """Whoever reads the error learns what was expected, and of which type the reply was."""
        for parse, reply, expected, got in _CASES:
            error = self.assertRaises(MalformedReply, parse, reply)
            self.assertEqual(f"{expected} was expected, not {got}", str(error))
