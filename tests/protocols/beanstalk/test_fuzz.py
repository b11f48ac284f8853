"""Random bytes for the listener."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from tests.fuzz.beanstalkcheck import SEEDS
from tests.fuzz.checks import check_beanstalk

_PIECES = st.sampled_from(
    [
        b"put 1 0 60 1\r\nx\r\n", b"put 2 9 1 2\r\n", b"reserve\r\n", b"reserve-with-timeout 0\r\n",
        b"delete 1\r\n", b"release 1 5 0\r\n", b"release 1 5 9\r\n", b"bury 1 1\r\n", b"kick 2\r\n",
        b"kick-job 1\r\n", b"touch 1\r\n", b"reserve-job 1\r\n", b"use a\r\n", b"watch a\r\n",
        b"ignore default\r\n", b"peek-ready\r\n", b"stats-tube default\r\n", b"stats-job 1\r\n",
        b"pause-tube default 0\r\n", b"list-tubes\r\n", b"quit\r\n", b"\r\n", b"\r", b" ", b"\0",
    ]
)  # fmt: skip


class BytesTests(SynchronousTestCase):
    """No bytes make the listener fail."""

    @given(st.lists(st.one_of(_PIECES, st.binary(max_size=8)), max_size=25))
    def test_any(self, pieces: list[bytes]) -> None:
        """However bytes arrive, replies are the same, and what the client had goes back."""
        check_beanstalk(b"".join(pieces))

    def test_seeds(self) -> None:
        """What the fuzzer starts from gets into all requests."""
        for seed in SEEDS:
            check_beanstalk(seed)
