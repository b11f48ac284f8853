"""Cleans of a work queue on Redis, by what is asked of the server."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from disque_tx.workqueue.queue import WorkQueue
from disque_tx.workqueue.scripts import ABANDONED, RETURN
from tests.workqueue.redisdouble import RedisDouble


class CleanTests(SynchronousTestCase):
    """``main`` and ``processing``: the lists. ``abandoned``: items with data and without a lease.
    ``scanned``: the pages of a scan of all items."""

    def setUp(self) -> None:
        self.server = RedisDouble(self.answer)
        self.queue = WorkQueue("P*", self.server.redis)
        self.lists: dict[bytes, list[bytes]] = {b"P*:queue": [], b"P*:processing": []}
        self.abandoned: set[bytes] = set()
        self.scanned: list[list[bytes]] = [[]]
        self.returned: list[tuple[bytes, int]] = []

    def answer(self, words: list[bytes]) -> Any:
        """The replies of the server."""
        if words[0] == b"LRANGE":
            return self.lists[words[1]][int(words[2]) : int(words[3]) + 1]
        if words[0] == b"SCAN":
            at = int(words[1])
            after = 0 if at + 1 == len(self.scanned) else at + 1
            return [b"%d" % after, [b"P*:item:" + name for name in self.scanned[at]]]
        if words[:2] == [b"EVALSHA", ABANDONED.sha.encode()]:
            return [name for name in words[7:] if name in self.abandoned]
        if words[:2] == [b"EVALSHA", RETURN.sha.encode()]:
            rows = [
                (name, int(count)) for name, count in zip(words[7::2], words[8::2], strict=True)
            ]
            self.returned += rows
            return len(rows)
        return b"OK"

    def cleaned(self, deep: bool = False, seconds: float = 0.0) -> int:
        """How many items a clean returns that takes so long."""
        cleaning = self.queue.deep_clean() if deep else self.queue.light_clean()
        self.server.settle()
        if seconds:
            self.assertNoResult(cleaning)
            self.server.advance(seconds)
        count: int = self.successResultOf(cleaning)
        return count

    def asked(self, *begin: bytes) -> list[list[bytes]]:
        """The rest of the requests that begin with these words."""
        found = [words for _, words in self.server.requests if words[: len(begin)] == [*begin]]
        return [words[len(begin) :] for words in found]

    def test_light(self) -> None:
        """What is in processing without a lease is returned, the oldest first, each as often as it
        stands there; what waits already, and what somebody works on, is left."""
        self.lists[b"P*:processing"] = [b"new", b"held", b"twice", b"there", b"twice", b"old"]
        self.lists[b"P*:queue"] = [b"there"]
        self.abandoned = {b"new", b"twice", b"there", b"old"}
        self.assertEqual(3, self.cleaned())
        self.assertEqual([(b"old", -1), (b"twice", -2), (b"new", -1)], self.returned)

    def test_nothing(self) -> None:
        """A queue on which nothing is abandoned costs one look."""
        self.lists[b"P*:processing"] = [b"held"]
        self.assertEqual(0, self.cleaned())
        self.assertEqual(
            [[b"P*:processing", b"0", b"999"], [b"P*:processing", b"1000", b"1999"]],
            self.asked(b"LRANGE"),
        )

    def test_many(self) -> None:
        """Lists are read a thousand items at a time, and a script gets a hundred, so that no other
        client of the server waits long; none is left out."""
        names = [b"%04d" % number for number in range(1_001)]
        self.lists[b"P*:processing"] = names
        self.abandoned = set(names)
        self.assertEqual(1_001, self.cleaned())
        self.assertEqual(names[::-1], [name for name, _ in self.returned])
        starts = [words[1] for words in self.asked(b"LRANGE", b"P*:processing")]
        self.assertEqual([b"999", b"1999", b"2999"], starts)
        for script, each in ((ABANDONED, 1), (RETURN, 2)):
            sizes = [len(words) - 5 for words in self.asked(b"EVALSHA", script.sha.encode())]
            self.assertEqual([100 * each] * 10 + [each], sizes)

    def test_deep(self) -> None:
        """Items that are in no list are found among all keys of the queue, and of no other queue
        whose name is like its own; they are returned after a second in which nobody put them
        back."""
        self.scanned = [[b"b", b"held", b"waits"], [], [b"a", b"back"]]
        self.abandoned = {b"a", b"b", b"back", b"waits"}
        self.lists[b"P*:queue"] = [b"waits"]
        self.server.reactor.callLater(0.5, self.lists[b"P*:queue"].append, b"back")
        cleaning = self.queue.deep_clean()
        self.server.settle()
        self.server.advance(0.6)
        self.assertNoResult(cleaning)
        self.assertEqual([], self.returned)
        self.server.advance(0.5)
        self.assertEqual(2, self.successResultOf(cleaning))
        self.assertEqual([(b"a", 0), (b"b", 0)], self.returned)
        pattern = [b"MATCH", b"P\\*:item:*", b"COUNT", b"1000"]
        self.assertEqual([[b"%d" % at, *pattern] for at in range(3)], self.asked(b"SCAN"))

    def test_deep_counts(self) -> None:
        """What a light clean finds counts as well, and a deep clean that finds nothing more takes
        no second."""
        self.lists[b"P*:processing"] = [b"old"]
        self.abandoned = {b"old"}
        self.assertEqual(1, self.cleaned(deep=True))
        self.assertEqual([(b"old", -1)], self.returned)


class ValueTests(SynchronousTestCase):
    """Times that a program gives."""

    def test_times(self) -> None:
        """A lease of less than a millisecond, or a wait that is no number, is refused at once; the
        shortest lease is one."""
        server = RedisDouble(lambda words: None)
        queue = WorkQueue("P", server.redis)
        for wrong in (0, 0.0009, -1, float("nan"), float("inf"), 1e12):
            error = self.assertRaises(ValueError, queue.lease, wrong)
            self.assertEqual(f"expiry_s is {wrong}. Give seconds, at least 0.001.", str(error))
        for wrong in (-1, float("nan"), float("inf")):
            error = self.assertRaises(ValueError, queue.lease, 1, True, wrong)
            said = f"timeout_s is {wrong}. Give seconds, or 0 to wait forever."
            self.assertEqual(said, str(error))
        queue.lease(0.001, False)
        server.settle()
        self.assertEqual(b"1", server.requests[0][1][8])
        self.assertEqual("<WorkQueue 'P' on 127.0.0.1:6379>", repr(queue))
