"""What is found to be wrong between the nodes of a cluster."""

from __future__ import annotations

import attrs
from twisted.trial.unittest import SynchronousTestCase

from tests.diagnosis.test_nodes import found, node, node_view

_SILENT = {"10.0.0.9:7711": "Timeout"}


class SilentTests(SynchronousTestCase):
    """Nodes that do not answer."""

    def test_since(self) -> None:
        """A node that does not answer is silent since the last answer that any other node had of
        it, whatever they had of others; since an unknown time if none of them knows it."""
        views = []
        for number, ninth_ms, other_ms in ((1, 5_000, 0), (2, 7_000, 9_000), (3, 6_000, 0)):
            ninth = attrs.evolve(node(9), pong_received_ms=ninth_ms)
            others = [
                attrs.evolve(node(other), pong_received_ms=other_ms)
                for other in {1, 2, 3} - {number}
            ]
            views.append(node_view(number, ninth, *others))
        (finding,) = found(*views, **_SILENT)
        self.assertEqual(("10.0.0.9:7711", 7.0), (finding.node, finding.since_s))
        (finding,) = found(node_view(1, node(2)), node_view(2, node(1)), **_SILENT)
        self.assertIsNone(finding.since_s)

    def test_never_answered(self) -> None:
        """Of a node that never answered any other, nobody knows since when it is silent."""
        (finding,) = found(node_view(1, node(9)), **_SILENT)
        self.assertIsNone(finding.since_s)


class DisagreementTests(SynchronousTestCase):
    """Nodes that some know, and others do not."""

    def test_each(self) -> None:
        """Every node that lacks one is named, with what it lacks: the address of a node that was
        asked, the ID of one that was not."""
        views = [node_view(1, node(2)), node_view(2, node(1), node(3)), node_view(4, node(1))]
        self.assertEqual(
            {
                ("10.0.0.1:7711", f"does not know {'3' * 40}, which other nodes know"),
                ("10.0.0.1:7711", "does not know 10.0.0.4:7711, which other nodes know"),
                ("10.0.0.2:7711", "does not know 10.0.0.4:7711, which other nodes know"),
                ("10.0.0.4:7711", "does not know 10.0.0.2:7711, which other nodes know"),
                ("10.0.0.4:7711", f"does not know {'3' * 40}, which other nodes know"),
            },
            {(finding.node, finding.what) for finding in found(*views)},
        )


class ClockTests(SynchronousTestCase):
    """Clocks that are apart."""

    def test_furthest(self) -> None:
        """The clock that is furthest ahead is compared with the one furthest behind: one of the two
        is wrong."""
        everybody = {1, 2, 3, 4}
        views = [
            attrs.evolve(node_view(number, *map(node, everybody - {number})), clock_s=clock_s)
            for number, clock_s in ((1, 3.0), (2, 9.5), (3, 1.0), (4, 2.0))
        ]
        (finding,) = found(*views)
        self.assertEqual(
            ("10.0.0.2:7711", "its clock is 8.5 s ahead of that of 10.0.0.3:7711"),
            (finding.node, finding.what),
        )

    def test_near(self) -> None:
        """Two seconds apart is not worth a word."""
        first, second = node_view(1, node(2)), node_view(2, node(1))
        self.assertEqual([], found(first, attrs.evolve(second, clock_s=2.0)))
        self.assertEqual(1, len(found(first, attrs.evolve(second, clock_s=2.125))))
