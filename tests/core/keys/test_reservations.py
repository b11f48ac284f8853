"""The keys that a node knows: when they end, what of them is logged, and what a restart finds."""

from __future__ import annotations

from disque_tx.core.keys.keysbyjob import Reservation
from disque_tx.core.keys.reservation import KEY_BYTES, ends_ms
from disque_tx.messages.keys import ENDED, HELD, RESERVED
from disque_tx.messages.records import KeyEntry
from tests.core.bench import ME, NodeCase

OURS = b"D-%s-000000000000000000000001-05a1" % ME[:8]
OTHER = b"D-bbbbbbbb-000000000000000000000001-05a1"


class ReservationsTests(NodeCase):
    """One node."""

    def setUp(self) -> None:
        super().setUp()
        self.keys = self.node.keys.reservations
        self.unix_ms = int(self.node.membership.unix_ms)

    def store(
        self, state: int = HELD, life_ms: int = 50_000, keep_ms: int = 0, job: bytes = OTHER
    ) -> Reservation:
        """Keep such a key."""
        return self.keys.store(KeyEntry(b"key", job, state, life_ms, keep_ms, 77), self.now_ms)

    def due_in(self) -> int:
        """When a key is due next, from now; -1 for never."""
        due_ms = int(self.keys.next_due_ms())
        return due_ms if due_ms < 0 else due_ms - self.now_ms

    def test_known(self) -> None:
        """A key is found by its name and by its job, and takes its memory until it is free."""
        before = self.node.memory.used
        found = self.store()
        self.assertEqual(KEY_BYTES + 3, self.node.memory.used - before)
        self.assertIs(found, self.keys.get(b"key"))
        self.assertIs(found, self.keys.of_job(OTHER))
        self.assertEqual((1, 77), (len(self.keys), found.born_ms))
        self.keys.drop(found)
        self.keys.drop(found)
        self.assertEqual(before, self.node.memory.used)
        self.assertEqual((None, None), (self.keys.get(b"key"), self.keys.of_job(OTHER)))
        self.assertEqual([], self.keys.due(self.now_ms + 100_000, 10))

    def test_replaced(self) -> None:
        """Of two keys with one name, freeing the former one does not free the latter."""
        former = self.store()
        self.keys.drop(former)
        latter = self.store(job=OURS)
        self.keys.drop(former)
        self.assertIs(latter, self.keys.get(b"key"))
        self.assertIs(latter, self.keys.of_job(OURS))

    def test_looked_at(self) -> None:
        """A keeper looks after a second whether a job is made, and after half a minute whether it
        exists; never of its own jobs, nor of one that is done."""
        for state, keep_ms, job, expected in (
            (RESERVED, 0, OTHER, 1_000),
            (HELD, 0, OTHER, 30_000),
            (RESERVED, 0, OURS, 50_000),
            (HELD, 0, OURS, -1),
            (ENDED, 9_000, OTHER, 9_000),
            (ENDED, 9_000, OURS, 9_000),
        ):
            self.setUp()
            self.store(state, 50_000, keep_ms, job=job)
            self.assertEqual(expected, self.due_in(), (state, job))

    def test_end_before_a_look(self) -> None:
        """A key that ends before it would be looked at is due at its end."""
        self.store(HELD, 5_000)
        self.assertEqual(5_000, self.due_in())
        (due,) = self.keys.due(self.now_ms + 5_000, 10)
        self.assertEqual(b"key", due.key)
        self.assertEqual(-1, self.due_in())

    def test_end(self) -> None:
        """A key ends with its job or with FOR, whichever is later; once the job is done, with FOR
        alone."""
        found = Reservation(b"key", OTHER, HELD, False)
        for state, expire_ms, keep_ms, expected in (
            (HELD, 5, 9, 9),
            (HELD, 9, 5, 9),
            (HELD, 9, 0, 9),
            (ENDED, 9, 5, 5),
        ):
            found.state, found.expire_ms, found.keep_ms = state, expire_ms, keep_ms
            self.assertEqual(expected, ends_ms(found))

    def test_ended(self) -> None:
        """Only the job that had a key is taken for done, and only while the key is kept."""
        self.store(ENDED, 1, 9_000)
        self.assertTrue(self.keys.ended(b"key", OTHER))
        self.assertFalse(self.keys.ended(b"key", OURS))
        self.assertFalse(self.keys.ended(b"other", OTHER))
        self.keys.clear()
        self.store(HELD)
        self.assertFalse(self.keys.ended(b"key", OTHER))

    def test_logged(self) -> None:
        """Keys that jobs have are logged with times that a restart understands, and freed there;
        those that are only reserved are neither."""
        found = self.store(RESERVED)
        self.keys.drop(found)
        self.assertEqual([], self.log.lines)
        found = self.store(HELD, 50_000, 9_000)
        logged = self.log.keys[b"key"]
        at_ms = self.now_ms + self.unix_ms
        self.assertEqual(
            (HELD, at_ms + 50_000, at_ms + 9_000, 77),
            (logged.state, logged.life_ms, logged.keep_ms, logged.born_ms),
        )
        found.state, found.keep_ms = ENDED, 0
        self.keys.changed(found)
        self.assertEqual(0, self.log.keys[b"key"].keep_ms)
        self.keys.clear()
        self.assertEqual([("hold", b"key")] * 2 + [("free", b"key")], self.log.lines)

    def test_loaded(self) -> None:
        """A restart finds what is left of each key, in place of what it knew; one whose time is
        over is free."""
        at_ms = self.now_ms + self.unix_ms
        for state, life_ms, keep_ms, expected in (
            (HELD, 5_000, 0, (5_000, 0)),
            (HELD, 5_000, 7_000, (5_000, 7_000)),
            (HELD, -5_000, 7_000, (0, 7_000)),
            (ENDED, 5_000, 7_000, (5_000, 7_000)),
            (HELD, 1, 0, (1, 0)),
            (HELD, 0, 0, None),
            (HELD, 5_000, -1, (5_000, 0)),
            (ENDED, 5_000, 0, None),
            (ENDED, 5_000, -7_000, None),
        ):
            kept = at_ms + keep_ms if keep_ms else 0
            entry = KeyEntry(b"key", OTHER, state, at_ms + life_ms, kept, 77)
            found = self.keys.load(entry, self.now_ms)
            self.assertIs(found, self.keys.get(b"key"))
            left = None
            if found is not None:
                keep = found.keep_ms - self.now_ms if found.keep_ms else 0
                left = (found.expire_ms - self.now_ms, keep)
            self.assertEqual(expected, left, (state, life_ms, keep_ms))
            self.assertEqual(int(found is not None), len(self.keys))

    def test_full(self) -> None:
        """There is no room for more keys above three quarters of the memory."""
        self.node.memory.limit = 1_000_000
        self.assertFalse(self.keys.full())
        self.node.memory.add(750_001 - int(self.node.memory.used))
        self.assertTrue(self.keys.full())
