"""Two processes of a daemon behind one HTTP listener, on connections in memory."""

from __future__ import annotations

from typing import Any

from twisted.internet.defer import Deferred

from disque_tx.protocols.http.server.exchange import Exchange
from disque_tx.services.node.root import NodeRoot
from tests.protocols.http.api.queues.test_queues import SlicedCase

_SCOPES = (b"PROCESSES", b"CLUSTER")


class Numbers:
    """The numbers of the processes, by the IDs of their nodes."""

    def __init__(self, *nodes: bytes) -> None:
        self._nodes = nodes

    def numbers(self) -> dict[bytes, int]:
        """As the listener asks for them."""
        return {node: number for number, node in enumerate(self._nodes, 1)}


class ProcessesCase(SlicedCase):
    """``first`` has the listener; a request for all of them gets the answers of both, without a
    bus. ``silent``: those that do not answer now."""

    def setUp(self) -> None:
        super().setUp()
        self.first = self.root
        self.folder = self.folder / "second"
        self.folder.mkdir()
        self.settings = self.make_settings()
        self.second = self.started()
        self.silent: set[bytes] = set()
        self.ids = [bytes(root.server.node.id) for root in (self.first, self.second)]
        self.roots = dict(zip(self.ids, (self.first, self.second), strict=True))
        numbers: Any = Numbers(*self.ids)
        self.host.processes = numbers
        alone = Exchange.call

        def call(exchange: Exchange, *words: bytes) -> Deferred[Any]:
            if words[0] != b"ASK" or words[1] == b"NODE":
                return alone(exchange, *words)
            return Deferred.fromCoroutine(self._asked(words[1], words[2:]))

        self.patch(Exchange, "call", call)

    async def _asked(self, scope: bytes, question: tuple[bytes, ...]) -> dict[bytes, Any]:
        """What ASK answers for all processes, or for one."""
        answers: list[Any] = []
        missing: list[bytes] = []
        for node in reversed(self.ids) if scope in _SCOPES else [scope]:
            if node in self.silent:
                missing.append(node)
                continue
            reply = await self.roots[node].node_service.call(b"ASK", b"NODE", *question)
            answers += reply[b"answers"]
        return {b"answers": answers, b"nodes-missing": missing}

    def at(self, root: NodeRoot, *words: bytes) -> Any:
        """The result of a command of one process."""
        return self.successResultOf(root.node_service.call(*words))

    def add(self, root: NodeRoot, queue: bytes, body: bytes, *options: bytes) -> str:
        """A job at one process; its ID."""
        job_id: bytes = self.at(root, b"ADDJOB", queue, body, b"0", *options).text
        return job_id.decode()
