"""Pipelines through the real parser and the real dispatcher, however their bytes arrive."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from disque_tx.commands.base.values import Value, ValueReplies
from disque_tx.commands.dispatch import SHARE_NS, Dispatcher
from disque_tx.core.base.client import Client
from disque_tx.errors import PeerError
from disque_tx.wire.resp.requests import MAX_BULK_UNAUTHENTICATED, RequestParser
from tests import profiles  # noqa: F401
from tests.commands.desk import DeskCase

_PASSWORD = b"secret"
_LONG = b"x" * (MAX_BULK_UNAUTHENTICATED + 1)
_REQUESTS: list[list[bytes]] = [
    [b"AUTH", _PASSWORD],
    [b"AUTH", b"wrong"],
    [b"PING"],
    [b"PING", _LONG],
    [b"PING", _LONG[1:]],
    [b"NACK", *[b"D"] * 9],
    [b"NACK", *[b"D"] * 10],
    [b"QLEN", b"q"],
    [b"AUTH", _LONG],
]


def encoded(requests: list[list[bytes]]) -> bytes:
    """The requests as clients send them."""
    parts: list[bytes] = []
    for words in requests:
        parts.append(b"*%d\r\n" % len(words))
        parts += [b"$%d\r\n%s\r\n" % (len(word), word) for word in words]
    return b"".join(parts)


class PipelineTests(DeskCase):
    """On a node with a password."""

    def setUp(self) -> None:
        super().setUp()
        self.server.password_required = True
        self.control.settings[b"requirepass"] = _PASSWORD
        # A turn has room for two requests.
        self.clock_ns = itertools.count(step=SHARE_NS // 2).__next__
        self.dispatcher = Dispatcher(self.server, self.server.registry, self.clock_ns)

    def answered(self, pieces: list[bytes]) -> list[Value]:
        """The replies to a new client that sends these pieces, one per turn."""
        client = self.connect(b"127.0.0.1:5002")
        parser = RequestParser()
        parser.restricted = True
        for piece in pieces:
            parser.feed(piece)
            self._drain(client, parser)
        assert isinstance(client.replies, ValueReplies)
        return client.replies.values

    def _drain(self, client: Client, parser: RequestParser) -> None:
        try:
            more = True
            while more:
                self.dispatcher.begin()
                more = self.dispatcher.drain(client, parser)
        except PeerError as error:
            client.replies.error(b"-" + str(error).encode())
            client.closing = True

    @given(
        st.lists(st.sampled_from(_REQUESTS), min_size=1, max_size=6),
        st.lists(st.floats(0, 1), max_size=6),
    )
    def test_cut_anywhere(self, requests: list[list[bytes]], cuts: list[float]) -> None:
        """Whatever the turns: the limits for unauthenticated clients end exactly with the request
        that contains the password, neither later, when a client has already sent more, nor
        earlier."""
        data = encoded(requests)
        places = sorted(int(cut * len(data)) for cut in cuts)
        pieces = [data[a:b] for a, b in zip([0, *places], [*places, len(data)], strict=True)]
        self.assertEqual(self.answered([data]), self.answered(pieces))

    @given(st.lists(st.sampled_from(_REQUESTS), min_size=1, max_size=6))
    def test_one_by_one(self, requests: list[list[bytes]]) -> None:
        """A pipeline gets the same replies as its requests one at a time."""
        one_by_one = [encoded([words]) for words in requests]
        self.assertEqual(self.answered([b"".join(one_by_one)]), self.answered(one_by_one))
