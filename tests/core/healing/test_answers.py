"""Nodes that were started again answer what they have, soon or late."""

from __future__ import annotations

from disque_tx.core.healing.restarts import BATCH_MAX
from disque_tx.messages.bustypes import HANDOVER
from disque_tx.messages.handover import HandoverMessage
from tests.core.flowbench import Direction
from tests.core.healing.healbench import HealCase


class AnswerTests(HealCase):
    """Two nodes with the same jobs, of which one is started again."""

    nodes = 2

    def asked(self) -> list[int]:
        """About how many jobs each message of the first node asked since the last call."""
        sent, self.flow.sent = self.flow.sent, []
        return [
            len(message.entries)
            for sender, _, message in sent
            if sender == 0 and message.type == HANDOVER and isinstance(message, HandoverMessage)
        ]

    def test_none_for_a_while(self) -> None:
        """A node whose answers do not come is asked a few questions, not all of them. When nothing
        was answered for long it is asked once more from the start, and has all its copies in the
        end."""
        count = 5 * BATCH_MAX + 10
        self.add(0, b"q", count, replicate=2, retry_s=600)
        self.flow.restart(1)
        self.asked()
        link = self.flow.entry(1, 0).link
        assert link is not None and isinstance(link.sink, Direction)
        link.sink.cut = True
        self.pass_ms(5_000)
        first = self.asked()
        self.assertEqual((4, BATCH_MAX), (len(first), max(first)))
        self.pass_ms(4_000)
        self.assertEqual([], self.asked())
        link.sink.cut = False
        self.pass_ms(40_000)
        self.assertEqual(count, sum(self.asked()))
        self.assertEqual(count, self.flow.nodes[1].jobs.table.count)

    def test_turned_off(self) -> None:
        """Where copies are not made again, by a rate of 0 or because nodes are never lost, nobody
        is asked for them."""
        for rate, after_ms in ((0, 100_000), (1_000, 0)):
            self.setUp()
            self.add(0, b"q", 5, replicate=2, retry_s=600)
            for node in self.flow.nodes:
                node.healing.rate.set(rate)
                node.healing.nodes.after_ms = after_ms
            self.flow.restart(1)
            self.asked()
            self.pass_ms(10_000)
            self.assertEqual([], self.asked(), rate)
