"""A client that adds with a key waits for other nodes, or gets an error."""

from __future__ import annotations

from disque_tx.messages.bustypes import GOTJOB, KEY_ANSWER, KEY_RESERVE
from tests.core.unique.keybench import STEP_MS, A, B, C, KeyCase


class ClaimTests(KeyCase):
    """Three nodes."""

    def test_silent_keeper(self) -> None:
        """A keeper that does not answer is asked again, ever more rarely: it may be busy."""
        asker = next(n for n in (A, B, C) if n not in self.keepers())
        self.cluster.lost = {KEY_ANSWER}
        self.begin_add(asker, replicate=1)
        asked = []
        for _ in range(4):
            before = self.cluster.log.count(KEY_RESERVE)
            self.cluster.run(2_000)
            asked.append(self.cluster.log.count(KEY_RESERVE) - before)
        # Both keepers are asked.
        self.assertTrue(4 <= asked[0] <= 10, asked)
        self.assertTrue(all(2 <= count <= 4 for count in asked[1:]), asked)

    def test_time_out(self) -> None:
        """A client gets an error when its time is over, and no job is left behind."""
        self.cluster.lost = {KEY_ANSWER}
        asker = next(n for n in (A, B, C) if n not in self.keepers())
        client = self.begin_add(asker, timeout_ms=500)
        self.cluster.run(600)
        self.assertTrue(self.error(client).startswith(b"NOREPL Timeout"))
        self.cluster.lost = set()
        self.cluster.run(100)
        self.assertEqual(1, self.add(asker)[1])

    def test_time_out_when_the_job_is_made(self) -> None:
        """A client whose time is over about when its job is made gets the ID, or an error and
        there is no job, never both: an error would make it add the job once more."""
        made = [self.made_at_the_end(timeout_ms) for timeout_ms in range(480, 600, STEP_MS)]
        self.assertEqual({False, True}, set(made))

    def made_at_the_end(self, timeout_ms: int) -> bool:
        """Whether the job of a client is made, which is possible only when its time is over."""
        self.setUp()
        asker = next(n for n in (A, B, C) if n not in self.keepers())
        node = self.cluster.up[asker]
        client = self.begin_add(asker, replicate=1, retry_s=60, timeout_ms=timeout_ms)
        node.memory.add(100)
        node.memory.limit = 110  # the job is to be kept elsewhere, where nobody confirms it
        self.cluster.lost = {GOTJOB}
        self.cluster.run(timeout_ms - STEP_MS)
        self.assertEqual([], client.replies.values)  # type: ignore[attr-defined]
        node.memory.limit = 1 << 30
        self.cluster.run(STEP_MS)
        answer = self.reply(client)
        self.assertEqual(isinstance(answer, list), len(node.jobs) == 1)
        return isinstance(answer, list)

    def test_keeper_without_memory(self) -> None:
        """A client learns that it is another node which has no memory for its key."""
        asker = next(n for n in (A, B, C) if n not in self.keepers())
        keeper = self.cluster.up[self.keepers()[0]]
        keeper.memory.add(100)
        keeper.memory.limit = 110
        client = self.begin_add(asker, replicate=1)
        self.cluster.settle()
        self.assertEqual(
            b"OOM a node that looks after the key is out of memory", self.error(client)
        )
        keeper.memory.limit = 1 << 30
        self.assertEqual(1, self.add(asker, replicate=1)[1])

    def test_too_few_nodes(self) -> None:
        """A job that cannot have its copies leaves its key free on all nodes."""
        client = self.begin_add(A, replicate=5, retry_s=60)
        self.cluster.run(100)
        self.assertTrue(self.error(client).startswith(b"NOREPL"))
        self.cluster.run(100)
        self.assertEqual([0, 0, 0], [len(node.keys) for node in self.cluster.up.values()])

    def test_client_goes(self) -> None:
        """A client that goes away while it waits leaves neither a job nor a key."""
        asker = next(n for n in (A, B, C) if n not in self.keepers())
        client = self.begin_add(asker)
        self.cluster.up[asker].client_gone(client)
        self.cluster.run(200)
        self.assertEqual([0, 0, 0], [len(node.keys) for node in self.cluster.up.values()])
        self.assertEqual(0, len(self.cluster.up[asker].jobs))
