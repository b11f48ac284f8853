"""From replies to bytes: RESP2 and RESP3 (client protocol, section 4; `HELLO` chooses).

One writer per connection collects what the commands of a turn answer; the runtime takes it all in
one piece.
"""

from __future__ import annotations

from typing import Final

from disque_tx.messages.records import JobRecord
from disque_tx.messages.replies import Output

_INTEGERS: Final = [b":%d\r\n" % n for n in range(1024)]
_LENGTHS: Final = [b"$%d\r\n" % n for n in range(4096)]
_ARRAYS: Final = [b"*%d\r\n" % n for n in range(64)]
#: What stands between the ID of a job and its body.
_BODIES: Final = [b"\r\n$%d\r\n" % n for n in range(4096)]
#: Encoded queue names kept at hand; emptied when full, so that strangers cannot make it grow.
_NAMES_KEPT: Final = 4096
_NAME_BYTES_KEPT: Final = 256


def _length(size: int) -> bytes:
    return _LENGTHS[size] if size < 4096 else b"$%d\r\n" % size


class RespWriter(Output):
    """Replies in RESP2."""

    __slots__ = ("_names",)

    def __init__(self) -> None:
        super().__init__()
        self._names: dict[bytes, bytes] = {}

    def _put(self, data: bytes) -> None:
        self._chunks.append(data)
        self.size += len(data)

    def status(self, text: bytes) -> None:
        chunks = self._chunks
        chunks.append(b"+")
        chunks.append(text)
        chunks.append(b"\r\n")
        self.size += len(text) + 3

    def error(self, line: bytes) -> None:
        self._put(b"-" + line + b"\r\n")

    def integer(self, value: int) -> None:
        self._put(_INTEGERS[value] if 0 <= value < 1024 else b":%d\r\n" % value)

    def bulk(self, data: bytes) -> None:
        self._put(_length(len(data)))
        self._put(data)
        self._put(b"\r\n")

    def null(self) -> None:
        self._put(b"$-1\r\n")

    def null_array(self) -> None:
        self._put(b"*-1\r\n")

    def array(self, size: int) -> None:
        self._put(_ARRAYS[size] if size < 64 else b"*%d\r\n" % size)

    def mapping(self, size: int) -> None:
        self.array(2 * size)

    def jobs(self, jobs: list[JobRecord], with_counters: bool) -> None:
        self.array(len(jobs))
        for job in jobs:
            self._put(b"*7\r\n" if with_counters else b"*3\r\n")
            self._put(self._name(job.queue))
            self._put(job.id)
            size = job.body_bytes
            self._put(_BODIES[size] if size < 4096 else b"\r\n$%d\r\n" % size)
            self._put(job.body)
            if with_counters:
                self._put(b"\r\n$5\r\nnacks\r\n:%d" % job.nacks)
                self._put(b"\r\n$21\r\nadditional-deliveries\r\n:%d" % job.deliveries)
            self._put(b"\r\n")

    def _name(self, queue: bytes) -> bytes:
        """The queue's name as a bulk string, and the header of the job ID that follows it."""
        name = self._names.get(queue)
        if name is None:
            name = b"".join((_length(len(queue)), queue, b"\r\n$40\r\n"))
            if len(queue) <= _NAME_BYTES_KEPT:
                if len(self._names) >= _NAMES_KEPT:
                    self._names.clear()
                self._names[queue] = name
        return name

    def speaking(self, version: int) -> RespWriter:
        writer = Resp3Writer() if version == 3 else RespWriter()
        # Piece by piece as they are: marks are counts of pieces.
        writer.size, self.size = self.size, 0
        writer._chunks, self._chunks = self._chunks, []
        return writer


class Resp3Writer(RespWriter):
    """Replies in RESP3: one null for all, and real maps."""

    __slots__ = ()

    def null(self) -> None:
        self._put(b"_\r\n")

    def null_array(self) -> None:
        self._put(b"_\r\n")

    def mapping(self, size: int) -> None:
        self._put(b"%%%d\r\n" % size)
