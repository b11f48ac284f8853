"""Every command at its largest: a bounded answer, and a node that goes on."""

from __future__ import annotations

from disque_tx.commands.dispatch import Dispatcher
from disque_tx.core.base.client import Client
from disque_tx.wire.resp.replies import RespWriter
from tests.commands.desk import DeskCase
from tests.commands.generated import hostile_requests
from tests.core.bench import add_request

_QUEUES = 300
_BODY_BYTES = 200_000
#: More than any answer may take.
ANSWER_BYTES_MAX = 32 * 1024 * 1024


class GeneratedTests(DeskCase):
    """A node with queues of long names, and with large jobs."""

    def setUp(self) -> None:
        super().setUp()
        self.node.memory.limit = 1 << 40
        for number in range(_QUEUES):
            self.add(b"%06d" % number + b"a" * 900, b"x")
        for _ in range(100):
            self.add(b"large", b"y" * _BODY_BYTES)

    def add(self, queue: bytes, body: bytes) -> None:
        """A queued job."""
        self.node.add_job(self.connect(b"127.0.0.1:1"), add_request(queue, body, ttl_s=3_600))

    def test_bounded(self) -> None:
        """Whatever is asked for, the answer to one request has a bound in bytes, none is a fault of
        the program, and the next client is served."""
        dispatcher = Dispatcher(self.server, self.server.registry, lambda: 0)
        for argv in hostile_requests(b"large"):
            client = Client(10**6, RespWriter(), b"127.0.0.1:9", self.node.now_ms)
            self.server.clients[client.id] = client
            dispatcher.run(client, argv)
            for _ in range(1_000):
                if not self.node.state.slices.busy():
                    break
                self.node.state.slices.run(self.node.now_ms)
                self.node.run_due()
            data = client.replies.take()  # type: ignore[attr-defined]
            shown = b" ".join(argv)[:120]
            self.assertLess(len(data), ANSWER_BYTES_MAX, shown)
            self.node.client_gone(client)
            del self.server.clients[client.id]
            dispatcher.run(self.client, [b"PING"])
