"""GETJOB with patterns, as the command calls the node."""

from __future__ import annotations

from disque_tx.core.base.client import Client
from disque_tx.core.getting.getting import GetRequest
from tests.core.bench import NodeCase


class MatchCase(NodeCase):
    """Clients that get jobs by patterns."""

    def request(
        self, *patterns: bytes, names: tuple[bytes, ...] = (), excepts: tuple[bytes, ...] = ()
    ) -> GetRequest:
        """GETJOB [EXCEPT ...] [FROM ...] MATCH ..."""
        return GetRequest(list(names), list(patterns), list(excepts))

    def match(self, *patterns: bytes, count: int = 1, **lists: tuple[bytes, ...]) -> list[bytes]:
        """With NOHANG; queue after queue of the delivered jobs."""
        request = self.request(*patterns, **lists)
        request.no_hang, request.count = True, count
        self.node.get_matching(self.client, request)
        (jobs,) = self.replies(self.client)
        return [] if jobs is None else [job[0] for job in jobs]  # type: ignore

    def block(self, *patterns: bytes, timeout_ms: int = 0, **lists: tuple[bytes, ...]) -> Client:
        """A client that finds nothing, and waits."""
        client = self.connect()
        request = self.request(*patterns, **lists)
        request.timeout_ms = timeout_ms
        self.node.get_matching(client, request)
        self.assertEqual([], self.replies(client))
        return client

    def queue_of(self, client: Client) -> bytes:
        """The queue of the only job that a client got; empty if it got none."""
        replies = self.replies(client)
        if not replies:
            return b""
        ((job,),) = replies  # type: ignore
        assert isinstance(job, list) and isinstance(job[0], bytes)
        return job[0]
