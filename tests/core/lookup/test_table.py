"""The hash table that can be scanned while it changes."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test
from twisted.trial.unittest import SynchronousTestCase

from disque_tx.core.lookup.jobtable import JobTable
from disque_tx.core.lookup.namedtable import RECENT_MAX, NamedTable
from disque_tx.core.lookup.table import Table
from disque_tx.messages.records import JobRecord, Keyed
from tests import profiles  # noqa: F401


def name(number: int) -> bytes:
    """A key."""
    return b"key-%d" % number


def number_of(entry: Keyed) -> int:
    """The number in an entry's key; -1 for temporary entries."""
    kind, number = entry.id.split(b"-")
    return int(number) if kind == b"key" else -1


def drop(table: Table[Keyed], key: bytes) -> None:
    """Remove the entry with this key."""
    entry = table.get(key)
    assert entry is not None
    table.remove(entry)


def numbers(entries: Iterable[Keyed]) -> list[int]:
    """The numbers of the entries."""
    return [number_of(entry) for entry in entries]


def filled(count: int) -> Table[Keyed]:
    """A table with this many entries."""
    table: Table[Keyed] = Table()
    for number in range(count):
        table.put(Keyed(name(number)))
    return table


def scanned(table: Table[Keyed], between: Callable[[], None] = lambda: None) -> list[int]:
    """All entries that a complete scan returns, with a callback between its steps."""
    found: list[int] = []
    cursor = 0
    while True:
        cursor, some = table.scan(cursor)
        found += numbers(some)
        if cursor == 0:
            return found
        between()


class TableMachine(RuleBasedStateMachine):
    """``Table`` compared with a dict."""

    def __init__(self) -> None:
        super().__init__()
        self.table: Table[Keyed] = Table()
        self.model: dict[bytes, int] = {}

    @rule(start=st.integers(0, 2000), count=st.integers(1, 500))
    def put(self, start: int, count: int) -> None:
        """Entries are added."""
        for number in range(start, start + count):
            if name(number) not in self.model:
                self.table.put(Keyed(name(number)))
                self.model[name(number)] = number

    @rule(start=st.integers(0, 2000), count=st.integers(1, 1000))
    def remove(self, start: int, count: int) -> None:
        """Entries are removed."""
        for number in range(start, start + count):
            if name(number) in self.model:
                drop(self.table, name(number))
                del self.model[name(number)]

    @rule()
    def clear(self) -> None:
        """All entries are removed at once."""
        self.table.clear()
        self.model.clear()

    @rule(number=st.integers(-(2**63), 2**63 - 1))
    def pick(self, number: int) -> None:
        """Some entry is picked as long as there are any."""
        picked = self.table.pick(number)
        assert (picked is not None) == bool(self.model)
        assert picked is None or number_of(picked) in self.model.values()

    @invariant()
    def same(self) -> None:
        """Both hold the same; an undisturbed scan returns every entry once."""
        assert len(self.model) == len(self.table) == self.table.count
        assert sorted(self.model.values()) == sorted(numbers(self.table.values()))
        assert sorted(self.model.values()) == sorted(scanned(self.table))
        for number in range(0, 2500, 97):
            entry = self.table.get(name(number))
            assert self.model.get(name(number)) == (None if entry is None else number_of(entry))


class NamedMachine(TableMachine):
    """``NamedTable`` compared with a dict."""

    def __init__(self) -> None:
        super().__init__()
        self.table = NamedTable()


class TableTests(SynchronousTestCase):
    """``Table``."""

    def test_like_a_dict(self) -> None:
        """Growing and shrinking loses no entries and invents none."""
        for machine in (TableMachine, NamedMachine):
            run_state_machine_as_test(
                machine, settings=settings(max_examples=25, stateful_step_count=15)
            )

    def test_many_names(self) -> None:
        """A name that was looked up is found while it is there, and no longer, also among more
        names than are looked up again and again."""
        table: NamedTable[Keyed] = NamedTable()
        count = 2 * RECENT_MAX + 1
        for number in range(count):
            table.put(Keyed(name(number)))
        for _ in range(2):
            found = [table.get(name(number)) for number in range(count)]
            self.assertEqual(list(range(count)), numbers(filter(None, found)))
        for number in range(0, count, 2):
            drop(table, name(number))
        found = [table.get(name(number)) for number in range(count)]
        self.assertEqual(list(range(1, count, 2)), numbers(filter(None, found)))
        table.clear()
        self.assertIsNone(table.get(name(1)))

    def test_remove_unknown(self) -> None:
        """Removing an unknown entry is an error, and the count stays."""
        table = filled(3)
        self.assertRaises(KeyError, table.remove, Keyed(b"x"))
        self.assertEqual(3, len(table))

    def test_scan_of_few(self) -> None:
        """A handful of queues is listed without duplicates (client protocol, section 18)."""
        self.assertEqual([0], scanned(filled(1)))
        self.assertEqual((0, []), filled(0).scan(0))

    @given(st.integers(0, 1500), st.integers(-60, 60), st.integers(0, 3))
    def test_scan_guarantee(self, count: int, pace: int, churn: int) -> None:
        """Entries that exist during the whole scan are returned, while the table grows or shrinks
        and other entries come and go between the steps (client protocol, section 18)."""
        table = filled(1500)
        stay = set(range(0, 1500, 3)) if pace < 0 else set(range(1500))
        state = {"next": 2000, "gone": 0}
        leaving = [number for number in range(1500) if number not in stay]
        for number in leaving[count:]:
            drop(table, name(number))
        del leaving[count:]

        def between() -> None:
            for _ in range(pace):
                table.put(Keyed(name(state["next"])))
                state["next"] += 1
            for _ in range(min(-pace, len(leaving))):
                drop(table, name(leaving.pop()))
            for number in range(churn):
                table.put(Keyed(b"churn-%d" % number))
            for number in range(churn):
                drop(table, b"churn-%d" % number)

        steps = {"left": 400}

        def bounded() -> None:
            steps["left"] -= 1
            if steps["left"] > 0:
                between()

        self.assertEqual(set(), stay - set(scanned(table, bounded)))

    def test_scan_while_it_collapses(self) -> None:
        """The same when a table of thousands shrinks to a few entries during one scan."""
        table = filled(5000)
        leaving = list(range(10, 5000))

        def between() -> None:
            for _ in range(min(50, len(leaving))):
                drop(table, name(leaving.pop()))

        self.assertEqual(set(range(10)), set(scanned(table, between)) & set(range(10)))

    @given(st.integers(0, 2**64 - 1))
    def test_any_cursor(self, cursor: int) -> None:
        """An invented cursor returns some entries and the scan still ends."""
        table = filled(300)
        for _ in range(600):
            cursor, some = table.scan(cursor)
            self.assertTrue(all(number in range(300) for number in numbers(some)))
            if cursor == 0:
                return
        self.fail("the scan does not end")

    def test_scan_in_parts(self) -> None:
        """A part of a scan is as long as was asked for, not much longer, and all parts together
        return each entry once: a walk over a million jobs does so much per turn."""
        table = filled(5_000)
        cursor, found = table.scan_part(0, 200)
        parts = [len(found)]
        while cursor != 0:
            cursor, some = table.scan_part(cursor, 200)
            parts.append(len(some))
            found += some
        self.assertEqual(sorted(range(5_000)), sorted(numbers(found)))
        self.assertTrue(50 < max(parts) < 220, parts)

    def test_scan_steps_stay_small(self) -> None:
        """One step costs the same in a table of any size."""
        table = filled(20_000)
        cursor = 0
        longest = 0
        while True:
            cursor, some = table.scan(cursor)
            longest = max(longest, len(some))
            if cursor == 0:
                break
        self.assertLess(longest, 20)

    def test_pick_reaches_all(self) -> None:
        """Every entry can be picked, so eviction finds all candidates."""
        table = filled(200)
        self.assertEqual(
            set(range(200)),
            {number_of(entry) for entry in map(table.pick, range(20_000)) if entry is not None},
        )


class PartTests(SynchronousTestCase):
    """Entries of which only the first bytes are the key."""

    def test_found_by_its_part(self) -> None:
        """A job is found by its ID, whatever its body is, and by nothing shorter or longer."""
        table: JobTable[JobRecord] = JobTable()
        ids = [b"D-%038d" % number for number in range(200)]
        for number, job_id in enumerate(ids):
            body = b"b" * (number % 3)
            table.put(JobRecord(job_id, b"q", body, (), 1, 0, delay_s=0, retry_s=0, repl=1))
        for job_id in ids:
            job = table.get(job_id)
            assert job is not None
            self.assertEqual(job_id, job.id)
            for other in (job_id[:-1], job_id + b"b", job_id + b"bb", b""):
                self.assertIsNone(table.get(other))
            table.remove(job)
            self.assertIsNone(table.get(job_id))
