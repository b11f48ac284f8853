"""The pages of metrics as they are, for dashboards and alarms that name what is on them."""

from __future__ import annotations

from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from disque_tx.protocols.http.metrics.perqueue import NameFilter
from tests.protocols.http.api.queues.test_queues import SlicedCase

_TABLE = Path(__file__).with_name("metrics.txt")
_PAGE = """\
# HELP disque_queue_jobs Its jobs, by where they are
# TYPE disque_queue_jobs gauge
disque_queue_jobs{queue="a",state="queued"} 2
disque_queue_jobs{queue="b.c",state="queued"} 1
disque_queue_jobs{queue="a",state="in_flight"} 1
disque_queue_jobs{queue="b.c",state="in_flight"} 0
disque_queue_jobs{queue="a",state="delayed"} 1
disque_queue_jobs{queue="b.c",state="delayed"} 0
disque_queue_jobs{queue="a",state="backoff"} 0
disque_queue_jobs{queue="b.c",state="backoff"} 0
disque_queue_jobs{queue="a",state="loaded"} 0
disque_queue_jobs{queue="b.c",state="loaded"} 0
# HELP disque_queue_clients_blocked Clients that wait for a job
# TYPE disque_queue_clients_blocked gauge
disque_queue_clients_blocked{queue="a"} 0
disque_queue_clients_blocked{queue="b.c"} 0
# HELP disque_queue_jobs_in_total Jobs queued
# TYPE disque_queue_jobs_in_total counter
disque_queue_jobs_in_total{queue="a"} 3
disque_queue_jobs_in_total{queue="b.c"} 1
# HELP disque_queue_jobs_out_total Jobs fetched
# TYPE disque_queue_jobs_out_total counter
disque_queue_jobs_out_total{queue="a"} 1
disque_queue_jobs_out_total{queue="b.c"} 0
# HELP disque_queue_paused The queue is paused
# TYPE disque_queue_paused gauge
disque_queue_paused{queue="a"} 0
disque_queue_paused{queue="b.c"} 1
"""
_FAMILIES = "jobs clients_blocked jobs_in jobs_out paused"


def sorted_pairs(text: str) -> list[str]:
    """The lines, without the order of the queues, which is that of a table."""
    return sorted(text.splitlines())


class PageTests(SlicedCase):
    """Whole pages."""

    def setUp(self) -> None:
        super().setUp()
        for body in (b"1", b"2", b"3"):
            self.call(b"ADDJOB", b"a", body, b"0")
        self.call(b"ADDJOB", b"a", b"later", b"0", b"DELAY", b"60")
        self.call(b"GETJOB", b"FROM", b"a")
        self.call(b"ADDJOB", b"b.c", b"x", b"0")
        self.call(b"PAUSE", b"b.c", b"out")

    def detailed(self, accept: str = "", query: str = "") -> str:
        """Some families of all queues."""
        names = ",".join(f"disque_queue_{name}" for name in _FAMILIES.split())
        path = f"/metrics/detailed?family={names}{query}"
        return self.slow("GET", path, Accept=accept or "*/*").body.decode()

    def test_detailed(self) -> None:
        """Each family stands together, below its explanation, in both formats."""
        found = self.detailed()
        self.assertEqual(sorted_pairs(_PAGE), sorted_pairs(found))
        heads = [line for line in _PAGE.splitlines() if line.startswith("#")]
        self.assertEqual(heads, [line for line in found.splitlines() if line.startswith("#")])
        openmetrics = self.detailed("application/openmetrics-text; version=1.0.0")
        expected = _PAGE
        for name in ("in", "out"):
            for word in ("HELP", "TYPE"):
                head = f"# {word} disque_queue_jobs_{name}"
                expected = expected.replace(f"{head}_total", head)
        self.assertEqual(sorted_pairs(f"{expected}# EOF"), sorted_pairs(openmetrics))
        self.assertTrue(openmetrics.endswith("\n# EOF\n"))

    def test_all_families(self) -> None:
        """Who names no family gets all of them."""
        text = self.slow("GET", "/metrics/detailed").body.decode()
        kinds = [line.removeprefix("# TYPE ") for line in text.splitlines() if "# TYPE" in line]
        expected = (
            "disque_queue_jobs gauge, disque_queue_oldest_age_seconds gauge,"
            " disque_queue_clients_blocked gauge, disque_queue_jobs_in_total counter,"
            " disque_queue_jobs_out_total counter, disque_queue_import_rate gauge,"
            " disque_queue_paused gauge"
        )
        self.assertEqual(expected, ", ".join(kinds))

    def test_unknown(self) -> None:
        """The first name that is no family is named."""
        answer = self.http("GET", "/metrics/detailed?family=disque_queue_jobs,zz,yy")
        self.problem(400, "ERR", answer)
        self.assertEqual("There is no family 'yy'.", answer.json["detail"])

    def test_no_queue(self) -> None:
        """A pattern without a queue has families without samples, and that is a page."""
        found = self.detailed(query="&queue=none")
        expected = [line for line in _PAGE.splitlines() if line.startswith("#")]
        self.assertEqual(expected, found.splitlines())

    def test_names(self) -> None:
        """No metric of the node, no explanation and no label goes or changes without notice."""
        self.call(b"QLEN", b"a")
        text = self.http("GET", "/metrics").body.decode()
        lines = [line if line.startswith("#") else line.rsplit(" ", 1)[0] for line in _kept(text)]
        self.assertEqual(_TABLE.read_text().splitlines(), lines)

    def test_of_a_process(self) -> None:
        """A daemon of one process has the figures of its first one, and no others."""
        self.assertEqual(200, self.http("GET", "/metrics?process=1").status)
        answer = self.http("GET", "/metrics?process=2")
        self.problem(404, "NOPROCESS", answer)


def _kept(text: str) -> list[str]:
    """The lines without those that depend on the version."""
    return [line for line in text.splitlines() if not line.startswith("disque_build_info")]


class BoundTests(SynchronousTestCase):
    """What a pattern is compared with, and what that costs."""

    def test_long_names(self) -> None:
        """A name of 1024 bytes is the longest that is compared, whatever the pattern is."""
        for pattern in (".*", "x.*"):
            chosen = NameFilter(pattern)
            found = (chosen.matches(b"x" * 1024), chosen.matches(b"x" * 1025))
            self.assertEqual((True, False), found, pattern)

    def test_cost(self) -> None:
        """Comparing costs by the lengths of both; all queues are had for nothing."""
        self.assertEqual(8 * 1024 // 16, NameFilter("x.*y.*zz").cost(b"x" * 2_000))
        self.assertEqual(8 * 10 // 16, NameFilter("x.*y.*zz").cost(b"x" * 10))
        self.assertEqual(0, NameFilter("x|.*").cost(b"x" * 1024))

    def test_escapes(self) -> None:
        """What is special in a glob pattern is plain text behind a backslash."""
        for pattern, name in (
            (r"a\?", b"a?"), (r"a\[b\]", b"a[b]"), (r"a\|b", b"a|b"), (r"\\", b"\\"),
            ("", b""), ("a|", b""), ("|a", b"a"),
        ):  # fmt: skip
            self.assertTrue(NameFilter(pattern).matches(name), pattern)
        self.assertFalse(NameFilter(r"a\?").matches(b"ab"))
