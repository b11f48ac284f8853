"""Random bytes for the HTTP listener."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from tests.fuzz.checks import check_http, http_seeds

_PIECES = st.sampled_from(
    [
        b"GET ", b"POST ", b"/healthz/live", b"/api/v1/queues/a/jobs", b" HTTP/1.1\r\n", b"\r\n",
        b"Host: localhost\r\n", b"Content-Length: 3\r\n", b"Transfer-Encoding: chunked\r\n",
        b"Content-Type: application/json\r\n", b"{}", b"0\r\n\r\n", b"3\r\n", b"\0", b"\xff", b":",
        b"Expect: 100-continue\r\n", b"?queue=", b"%", b" ", b"Connection: close\r\n",
    ]
)  # fmt: skip


class BytesTests(SynchronousTestCase):
    """No bytes make the listener fail."""

    @given(st.lists(st.one_of(_PIECES, st.binary(max_size=8)), max_size=40))
    def test_any(self, pieces: list[bytes]) -> None:
        """However bytes arrive, answers are the same, and none is a fault of the program."""
        check_http(b"".join(pieces))

    def test_seeds(self) -> None:
        """What the fuzzer starts from gets past the checks of heads and bodies."""
        for seed in http_seeds():
            check_http(seed)

    @given(st.sampled_from(http_seeds()), st.data())
    def test_damaged(self, seed: bytes, data: st.DataObject) -> None:
        """Requests with a damaged byte are answered or refused."""
        at = data.draw(st.integers(0, len(seed) - 1))
        check_http(seed[:at] + data.draw(st.binary(max_size=3)) + seed[at + 1 :])
