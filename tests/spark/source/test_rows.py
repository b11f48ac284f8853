"""Rows of jobs, by their IDs."""

from __future__ import annotations

from typing import Any, Final

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from disque_tx.client.requests import replies
from disque_tx.client.requests.replies import MalformedReply
from disque_tx.client.values import Job
from disque_tx.spark.errors import JobsLost
from disque_tx.spark.options import ReadOptions, cluster
from disque_tx.spark.schema import text
from disque_tx.spark.source.rows import JobRows, delivered, job_rows, joined
from tests.client.scripted import bulk
from tests.spark import nodes
from tests.spark.nodes import IDS, NIL, NodesTestCase, address_of

_COUNTS: Final = st.integers(0, 1 << 62)
_JOBS: Final = st.lists(
    st.builds(
        Job,
        st.sampled_from(("q", "r", "\udcff")),
        st.sampled_from(IDS),
        st.binary(),
        _COUNTS,
        _COUNTS,
    )
)


def reply(*jobs: Job) -> list[list[Any]]:
    """What a node answers, parsed."""
    return [
        [job.queue.encode("utf-8", "surrogateescape"), job.id.encode(), job.body]
        + [b"nacks", job.nacks, b"additional-deliveries", job.additional_deliveries]
        for job in jobs
    ]


def rows(found: JobRows) -> list[tuple[Any, ...]]:
    """The rows."""
    return [tuple(row.values()) for row in found.rows.to_pylist()]


def options(strict: bool, **more: Any) -> ReadOptions:
    """Options of a stream."""
    return ReadOptions(cluster("a:1"), ("q",), strict=strict, **more)


class ShownTests(NodesTestCase):
    """SHOW requests to scripted nodes."""

    def test_row(self) -> None:
        """A row has the documented fields; ctime is in µs."""
        node = self.node(SHOW=nodes.shown(IDS[0], queue=bulk(b"\xff")))
        (row,) = job_rows(
            self.servers(node), address_of(node), IDS[:1], options(True, details=True)
        )
        details = (1_700_000_000_123_000, 60, 1000, 0, 1)
        self.assertEqual((IDS[0], "\\xff", b"body", 1, 2, *details), row)
        counters = (b"nacks", 1, b"additional-deliveries", 2)
        same = delivered([[b"\xff", IDS[0].encode(), b"body", *counters]])
        self.assertEqual(row[:5], tuple(same.rows.to_pylist()[0].values()))

    def test_acknowledged(self) -> None:
        """A job that others have acknowledged is read as long as its body exists; one without a
        body counts as lost."""
        acked = nodes.shown(IDS[0], state=bulk("acked"))
        dummy = nodes.shown(IDS[0], state=bulk("acked"), body=NIL, queue=NIL)
        node = self.node(SHOW=[acked, dummy])
        servers = self.servers(node)
        self.assertEqual(1, len(list(job_rows(servers, address_of(node), IDS[:1], options(True)))))
        with self.assertRaises(JobsLost):
            list(job_rows(servers, address_of(node), IDS[:1], options(True)))

    def test_lost(self) -> None:
        """Jobs that no node knows end the query, with their number, the first ID and what to do; or
        they are left out."""
        node = self.node(SHOW=[nodes.shown(IDS[0]), NIL, NIL])
        node_again = self.node(SHOW=[nodes.shown(IDS[0]), NIL, NIL])
        with self.assertRaises(JobsLost) as raised:
            list(job_rows(self.servers(node), address_of(node), IDS[:3], options(True)))
        for words in ("2 jobs", IDS[1], "failOnDataLoss"):
            self.assertIn(words, str(raised.exception))
        with self.assertLogs("disque_tx.spark.source.rows", "WARNING"):
            rows = list(
                job_rows(self.servers(node_again), address_of(node_again), IDS[:3], options(False))
            )
        self.assertEqual([IDS[0]], [row[0] for row in rows])

    def test_node_down(self) -> None:
        """A job of a node that is down is never left out here, because it would be acknowledged."""
        node = self.node()
        node.close()
        with self.assertRaises(JobsLost) as raised:
            list(job_rows(self.servers(node), address_of(node), IDS[:1], options(False)))
        self.assertIn(node.address, str(raised.exception))


class ReplyTests(SynchronousTestCase):
    """Replies of nodes, and others."""

    @given(_JOBS, _JOBS)
    def test_same(self, first: list[Job], second: list[Job]) -> None:
        """Every job has a row with what the client would return, in the order of the replies, and
        the size counts the bodies."""
        found = joined([delivered(reply(*first)), delivered(reply(*second))])
        jobs = [*replies.jobs(reply(*first)), *replies.jobs(reply(*second))]
        expected = [
            (job.id, text(job.queue.encode("utf-8", "surrogateescape")), job.body, job.nacks)
            + (job.additional_deliveries,)
            for job in jobs
        ]
        self.assertEqual(expected, rows(found))
        self.assertEqual([job.id for job in jobs], list(found.ids))
        self.assertEqual(sum(len(job.body) for job in jobs), found.size)

    @given(_JOBS, st.sets(st.sampled_from(IDS)))
    def test_only(self, jobs: list[Job], wanted: set[str]) -> None:
        """Jobs that are left out of a batch have no rows, and the others keep their order."""
        different = list({job.id: job for job in jobs}.values())
        found = delivered(reply(*different)).only([job.id for job in different if job.id in wanted])
        expected = delivered(reply(*(job for job in different if job.id in wanted)))
        self.assertEqual((rows(expected), list(expected.ids)), (rows(found), list(found.ids)))
        self.assertEqual(expected.size, found.size)

    def test_none(self) -> None:
        """A node without jobs answers nil, or an array without elements."""
        nothing: list[list[Any]] = []
        for answer in (None, nothing):
            self.assertEqual([], rows(delivered(answer)))

    def test_malformed(self) -> None:
        """What no node answers is an error of the node, and never rows without values."""
        good = reply(Job("q", IDS[0], b"x"))[0]
        changes: dict[int, list[Any]] = {
            0: [1, None],
            1: [b"short", b"\xff" * 40, f"{IDS[0][:-1]} ".encode(), 7],
        }
        changes |= {2: [None, 1], 4: [b"1", None, True], 6: [1.0, None]}
        bad: list[Any] = [
            [[*good[:at], value, *good[at + 1 :]]] for at in changes for value in changes[at]
        ]
        bad += [[good[:3]], [good, good[:6]], [dict(enumerate(good))], [None], 5, b"x", {1: good}]
        for each in bad:
            with self.assertRaises(MalformedReply, msg=repr(each)):
                delivered(each)
        self.assertEqual(1, len(delivered([good]).ids))
