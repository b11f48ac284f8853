"""The table of jobs, in the order in which they were made."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test
from twisted.trial.unittest import SynchronousTestCase

from disque_tx.core.lookup.jobtable import JobTable
from disque_tx.core.lookup.walk import Walk
from disque_tx.messages.records import JobRecord
from disque_tx.text.hashes import ID_CHARACTERS, place32
from disque_tx.wire.jobs.jobid import JobIdSource
from tests import profiles  # noqa: F401

Jobs = JobTable[JobRecord]

_NODE = b"0123456789" * 4


def ids(seed: int, count: int) -> list[bytes]:
    """The first IDs that a node makes."""
    source = JobIdSource(b"%040d" % seed)
    return [source.next_id(_NODE, 60, 1) for _ in range(count)]


def alike(count: int, places: bytes = b"A") -> list[bytes]:
    """IDs that somebody has made to have one place, or one of a few."""
    return [
        b"D-01234567-AAAA%c%019d-0001" % (places[number % len(places)], number)
        for number in range(count)
    ]


def record(job_id: bytes) -> JobRecord:
    """A job."""
    return JobRecord(job_id, b"q", b"body", (), 1, 0, delay_s=0, retry_s=1, repl=1)


def filled(job_ids: Iterable[bytes]) -> Jobs:
    """A table with these jobs."""
    table: Jobs = JobTable()
    for job_id in job_ids:
        table.put(record(job_id))
    return table


def drop(table: Jobs, job_id: bytes) -> None:
    """Remove the job with this ID."""
    job = table.get(job_id)
    assert job is not None
    table.remove(job)


def scanned(table: Jobs, between: Callable[[], None] = lambda: None) -> list[bytes]:
    """The IDs that a complete scan returns, with a callback between its parts."""
    found: list[bytes] = []
    cursor = 0
    while True:
        cursor, some = table.scan_part(cursor, 30)
        found += [job.id for job in some]
        if cursor == 0:
            return found
        between()


#: Half of them are neighbours, the others have places that are few.
_ALIKE = alike(1_500, b"ABCDEFGHIJKLMNOP")
_IDS = [job_id for pair in zip(ids(1, 1_500), _ALIKE, strict=True) for job_id in pair]


class JobTableMachine(RuleBasedStateMachine):
    """``JobTable`` compared with a set."""

    def __init__(self) -> None:
        super().__init__()
        self.table: Jobs = JobTable()
        self.model: set[bytes] = set()

    @rule(start=st.integers(0, 2_000), count=st.integers(1, 500))
    def put(self, start: int, count: int) -> None:
        """Jobs are added."""
        for job_id in _IDS[start : start + count]:
            if job_id not in self.model:
                self.table.put(record(job_id))
                self.model.add(job_id)

    @rule(start=st.integers(0, 2_000), count=st.integers(1, 1_000))
    def remove(self, start: int, count: int) -> None:
        """Jobs are removed."""
        for job_id in _IDS[start : start + count]:
            if job_id in self.model:
                drop(self.table, job_id)
                self.model.remove(job_id)

    @rule()
    def clear(self) -> None:
        """All jobs are removed at once."""
        self.table.clear()
        self.model.clear()

    @rule(number=st.integers(-(2**63), 2**63 - 1))
    def pick(self, number: int) -> None:
        """Some job is picked as long as there are any."""
        picked = self.table.pick(number)
        assert (picked is not None) == bool(self.model)
        assert picked is None or picked.id in self.model

    @invariant()
    def same(self) -> None:
        """Both hold the same; an undisturbed scan and a walk return every job once."""
        assert len(self.model) == len(self.table) == self.table.count
        expected = sorted(self.model)
        assert expected == sorted(job.id for job in self.table.values())
        assert expected == sorted(scanned(self.table))
        walk = Walk(self.table)
        walk.begin()
        walked: list[bytes] = []
        while walk.under_way:
            walked += [job.id for job in walk.part(50)]
        assert expected == sorted(walked)
        for job_id in _IDS[::97]:
            job = self.table.get(job_id)
            assert (job is not None and job.id == job_id) == (job_id in self.model)


class JobTableTests(SynchronousTestCase):
    """``JobTable``."""

    def test_like_a_set(self) -> None:
        """Growing and shrinking loses no jobs and invents none, also when half of them have few
        places."""
        run_state_machine_as_test(
            JobTableMachine, settings=settings(max_examples=25, stateful_step_count=15)
        )

    def test_order(self) -> None:
        """A walk comes to nearly every job shortly after, or before, the one that was made before
        it, so what it reads lies side by side in memory."""
        made = ids(1, 10_000)
        table = filled(made)
        walk = Walk(table)
        walk.begin()
        order: dict[bytes, int] = {}
        while walk.under_way:
            for job in walk.part(100):
                order[job.id] = len(order)
        apart = [abs(order[a] - order[b]) for a, b in pairwise(made)]
        self.assertLess(sum(steps > 14 for steps in apart), 100)

    def test_even(self) -> None:
        """However many jobs between them are done, those that are left fill the table evenly: one
        that is looked up is not searched for among many."""
        made = ids(2, 64_000)
        for step in (1, 2, 3, 7, 16, 64):
            left = made[::step]
            table = filled(left)
            # It grows by what is in its buckets, and not by what has overflowed.
            self.assertGreater(table.size(), len(left) // 4, step)

    def test_several_nodes(self) -> None:
        """The same with the jobs of several nodes, and of a node before and after its restarts."""
        table = filled(job_id for seed in range(10) for job_id in ids(seed, 2_000))
        self.assertGreater(table.size(), 20_000 // 4)

    def test_made_to_collide(self) -> None:
        """Thousands of IDs that somebody has chosen to have one place do not make one part of a
        scan or of a walk long, and are all in them."""
        chosen = alike(5_000)
        self.assertEqual(1, len({place32(job_id) for job_id in chosen}))
        table = filled(chosen)
        self.assertIsNone(table.get(alike(5_001)[-1]))
        walk = Walk(table)
        walk.begin()
        parts = []
        while walk.under_way:
            parts.append([job.id for job in walk.part(100)])
        self.assertEqual(chosen, sorted(job_id for part in parts for job_id in part))
        self.assertLess(max(map(len, parts)), 130)
        cursor, most = 0, 0
        while True:
            cursor, some = table.scan(cursor)
            most = max(most, len(some))
            if cursor == 0:
                break
        self.assertLess(most, 30)
        for job_id in chosen:
            drop(table, job_id)
        self.assertEqual((0, []), (len(table), scanned(table)))

    def test_shrinks(self) -> None:
        """Jobs that have overflowed are found while the table shrinks to a few, whichever bucket
        they come from."""
        others = ids(5, 500)
        for place in range(64):
            chosen = alike(12, ID_CHARACTERS[place : place + 1])
            table = filled([*others, *chosen])
            for job_id in others:
                drop(table, job_id)
            missed = [job_id for job_id in chosen if table.get(job_id) is None]
            self.assertEqual([], missed, place)
            for job_id in chosen:
                drop(table, job_id)

    def test_remove_unknown(self) -> None:
        """Removing an unknown job is an error, and the count stays."""
        for there in (ids(1, 3), alike(300)):
            table = filled(there)
            for job_id in (ids(3, 1)[0], alike(301)[-1]):
                self.assertRaises(KeyError, table.remove, record(job_id))
            self.assertEqual(len(there), len(table))

    @given(st.integers(0, 400), st.booleans(), st.booleans())
    def test_scan_guarantee(self, pace: int, grows: bool, collide: bool) -> None:
        """Jobs that exist during the whole scan are returned, while the table grows or shrinks
        between its parts, although some move to the second table meanwhile (client protocol,
        section 19)."""
        made = _ALIKE if collide else _IDS[:1_500]
        stay = set(made[::3])
        there = [job_id for job_id in made if job_id not in stay]
        coming: list[bytes] = []
        if grows:
            there, coming = [], there
        table = filled([*stay, *there])

        def between() -> None:
            for _ in range(pace):
                if coming:
                    table.put(record(coming.pop()))
                elif there:
                    drop(table, there.pop())

        self.assertEqual(set(), stay - set(scanned(table, between)))

    @given(st.integers(0, 2**64 - 1))
    def test_any_cursor(self, cursor: int) -> None:
        """An invented cursor returns some jobs and the scan still ends."""
        table = filled(_IDS[:300])
        known = set(_IDS[:300])
        for _ in range(600):
            cursor, some = table.scan(cursor)
            self.assertLessEqual({job.id for job in some}, known)
            if cursor == 0:
                return
        self.fail("the scan does not end")


class PlaceTests(SynchronousTestCase):
    """``place32``."""

    def test_neighbours(self) -> None:
        """Jobs that a node makes one after the other have neighbouring places, also where it draws
        the next characters of its IDs."""
        places = [place32(job_id) >> 7 for job_id in ids(7, 1_000)]
        steps = [(b - a) % 2**25 for a, b in pairwise(places)]
        self.assertEqual({0, 1}, set(steps))
        self.assertTrue(940 < sum(steps) < 970, sum(steps))

    def test_anywhere(self) -> None:
        """Nodes begin anywhere, so that their jobs do not meet."""
        places = [place32(ids(seed, 1)[0]) for seed in range(100)]
        self.assertEqual(100, len(set(places)))
        self.assertEqual({True, False}, {place < 0 for place in places})

    def test_any_id(self) -> None:
        """Whatever has no such characters has a place as well: clients may send any ID."""
        for job_id in (b"", b"D-", b"D-01234567-AB", b"\xff" * 40):
            self.assertIsInstance(place32(job_id), int)
        self.assertEqual(place32(b"D-01234567-BAAAA"), place32(b"D-ffffffff-BAAAAxyz"))
