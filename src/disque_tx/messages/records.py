"""The values that travel between layers: the job record, and the sinks for what leaves a node.

A sink is how the state machine sends something to the outside without knowing bytes: it calls a
method, and the owner of the sink (``wire`` for bytes, the embedding API for Python values) keeps
the data until the runtime sends it in the right order.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i16, i32, i64, mypyc_attr, u8

from disque_tx.errors import LocalError
from disque_tx.messages.limits import U16_MAX, U32_MAX
from disque_tx.text.hashes import hash32, place32

JOB_ID_LENGTH: Final = 40
#: In place of a job ID where there is none.
NO_JOB_ID: Final = b"\0" * JOB_ID_LENGTH
NODE_ID_LENGTH: Final = 40

# Job states (cluster protocol, section 1.3).
WAIT_REPL: Final = 0
ACTIVE: Final = 1
QUEUED: Final = 2
ACKED: Final = 3
STATE_NAMES: Final = (b"wait-repl", b"active", b"queued", b"acked")

# Job flags (cluster protocol, section 1.3).
BCAST_QUEUED: Final = 1
BCAST_WILLQUEUE: Final = 2
DELIVERED: Final = 4

#: No number of 32 bits.
_BY_HASH: Final = 1 << 40

#: Bytes of what a protocol notes about a job, and of the name of the protocol.
NOTE_BYTES_MAX: Final = 512
OWNER_BYTES_MAX: Final = 32


@mypyc_attr(acyclic=True)
class Linked:
    """Something that can be in a ring of the schedule: its neighbours, both ``None`` while it is in
    none. Kept in the object itself, for there are millions of them."""

    __slots__ = ("next", "prev")

    def __init__(self) -> None:
        self.prev: Linked | None = None
        self.next: Linked | None = None


@mypyc_attr(acyclic=True)
class Keyed(Linked):
    """Something that a table finds by its ``id``. ``data``: begins with the ID. ``hashed``: the low
    32 bits of the hash of the ID, or ``place`` instead, so that neither growing the table nor a
    search looks at the IDs of others."""

    __slots__ = ("data", "hashed")

    def __init__(self, key: bytes, place: i64 = _BY_HASH) -> None:
        super().__init__()
        self.data: bytes = key
        self.hashed: i32 = hash32(key) if place == _BY_HASH else i32(place)

    @property
    def id(self) -> bytes:
        """What it is found by."""
        return self.data


@mypyc_attr(acyclic=True)
class JobRecord(Keyed):
    """A job as it travels and as it is stored (cluster protocol, sections 1.3 and 5).

    ``etime_s``: absolute expiry, unix seconds. ``ctime``: creation, nanosecond-like number.
    ``delay_s``, ``retry_s``: seconds; retry 0 means at most once. ``nodes``: IDs of the nodes that
    may hold a copy. ``queue`` and ``body`` are empty for a dummy acknowledgement.

    There are millions of jobs, and most bodies are short: ``data`` is the ID and the body in one
    object, and the order of the attributes leaves no holes between them.
    """

    __slots__ = (
        "repl",
        "queue",
        "nodes",
        "ctime",
        "etime_s",
        "retry_s",
        "_delay_s",
        "_nacks",
        "_deliveries",
        "flags",
        "state",
    )

    def __init__(
        self,
        job_id: bytes,
        queue: bytes,
        body: bytes,
        nodes: tuple[bytes, ...],
        ctime: i64,
        etime_s: i64,
        *,
        delay_s: i64,
        retry_s: i64,
        repl: i64,
    ) -> None:
        super().__init__(job_id, i64(place32(job_id)))
        self.repl: i32 = i32(repl)
        self.queue: bytes = queue
        self.nodes: tuple[bytes, ...] = nodes
        self.ctime: i64 = ctime
        self.etime_s: i64 = etime_s
        self.retry_s: i64 = retry_s
        # Not by the property: what is compiled would take four bytes more for every job.
        self._delay_s: i32 = i32(delay_s if delay_s < 0x8000_0000 else delay_s - 0x1_0000_0000)
        self._nacks: i16 = 0
        self._deliveries: i16 = 0
        self.flags: i16 = 0
        self.state: u8 = WAIT_REPL
        if body:
            if len(job_id) != JOB_ID_LENGTH:
                raise LocalError(f"job ID of {len(job_id)} bytes, it must have {JOB_ID_LENGTH}")
            self.data = job_id + body

    @property
    def id(self) -> bytes:
        """The job's ID, 40 bytes."""
        return self.data[:JOB_ID_LENGTH]

    @id.setter
    def id(self, job_id: bytes) -> None:
        self.data = job_id + self.body
        self.hashed = place32(job_id)

    @property
    def body(self) -> bytes:
        """What consumers get."""
        return self.data[JOB_ID_LENGTH:]

    @body.setter
    def body(self, body: bytes) -> None:
        self.data = self.id + body

    @property
    def body_bytes(self) -> i64:
        """The length of the body."""
        return max(0, i64(len(self.data)) - JOB_ID_LENGTH)

    @property
    def delay_s(self) -> i64:
        """How long it is not delivered after it was added, in seconds."""
        return i64(self._delay_s) & U32_MAX

    @delay_s.setter
    def delay_s(self, delay_s: i64) -> None:
        self._delay_s = i32(delay_s if delay_s < 0x8000_0000 else delay_s - 0x1_0000_0000)

    @property
    def nacks(self) -> i64:
        """How often consumers returned it, up to 65535."""
        return i64(self._nacks) & U16_MAX

    @nacks.setter
    def nacks(self, count: i64) -> None:
        self._nacks = i16(count if count < 0x8000 else count - 0x1_0000)

    @property
    def deliveries(self) -> i64:
        """How often it was queued again, up to 65535."""
        return i64(self._deliveries) & U16_MAX

    @deliveries.setter
    def deliveries(self, count: i64) -> None:
        self._deliveries = i16(count if count < 0x8000 else count - 0x1_0000)


@mypyc_attr(acyclic=True)
class KeyEntry:
    """What one node knows about a key, as it travels and as it is stored. ``job_id``: the
    job that has it. ``state``: see ``messages.keys``. ``life_ms``: what is left of the life of that
    job. ``keep_ms``: for how long the key is kept at least. ``born_ms``: when it was reserved, in
    unix milliseconds. In the log the other two are unix milliseconds, too."""

    __slots__ = ("born_ms", "job_id", "keep_ms", "key", "life_ms", "state")

    def __init__(
        self, key: bytes, job_id: bytes, state: i64, life_ms: i64, keep_ms: i64, born_ms: i64
    ) -> None:
        self.key: bytes = key
        self.job_id: bytes = job_id
        self.state: i64 = state
        self.life_ms: i64 = life_ms
        self.keep_ms: i64 = keep_ms
        self.born_ms: i64 = born_ms

    def fields(self) -> tuple[bytes, bytes, int, int, int, int]:
        """Everything in it."""
        numbers = int(self.life_ms), int(self.keep_ms), int(self.born_ms)
        return self.key, self.job_id, int(self.state), *numbers


@mypyc_attr(allow_interpreted_subclasses=True)
class IdSource:
    """Where the IDs of new jobs come from."""

    def next_id(self, node_id: bytes, ttl_s: i64, retry_s: i64) -> bytes:
        """An ID never used before for a job made by ``node_id`` (cluster protocol, 15.2)."""
        raise NotImplementedError


@mypyc_attr(allow_interpreted_subclasses=True)
class RequestSource:
    """Where the requests of a client come from, each a list of words, the command first.

    ``restricted``: set while the client has not authenticated, but must; small limits apply.
    """

    __slots__ = ("restricted",)

    def __init__(self) -> None:
        self.restricted: bool = False

    def next(self) -> list[bytes] | None:
        """The next complete request, never empty; ``None`` when there is none.

        Raises ``PeerError`` when the client sent something that is not a request.
        """
        raise NotImplementedError


@mypyc_attr(allow_interpreted_subclasses=True)
class ReplyPart:
    """A part of a long reply, made in a slice of the work and sent with the others in the end."""

    __slots__ = ()


@mypyc_attr(allow_interpreted_subclasses=True)
class ReplySink:
    """Where the answer to a request goes; one per client, in order of its requests.

    Arrays and maps are announced with their size, then their elements follow.
    """

    def status(self, text: bytes) -> None:
        """A short status word, such as ``OK`` or a job ID."""
        raise NotImplementedError

    def error(self, line: bytes) -> None:
        """An error: code and text, without line breaks."""
        raise NotImplementedError

    def integer(self, value: int) -> None:
        """A signed 64-bit number."""
        raise NotImplementedError

    def bulk(self, data: bytes) -> None:
        """A binary-safe string."""
        raise NotImplementedError

    def null(self) -> None:
        """No value where a string could be."""
        raise NotImplementedError

    def null_array(self) -> None:
        """No value where an array could be."""
        raise NotImplementedError

    def array(self, size: int) -> None:
        """Announce an array of ``size`` elements."""
        raise NotImplementedError

    def mapping(self, size: int) -> None:
        """Announce ``size`` pairs of key and value."""
        raise NotImplementedError

    def jobs(self, jobs: list[JobRecord], with_counters: bool) -> None:
        """An array of jobs as GETJOB answers it (client protocol, section 15)."""
        raise NotImplementedError

    def mark(self) -> int:
        """A position to go back to with :meth:`rewind`."""
        raise NotImplementedError

    def rewind(self, mark: int) -> None:
        """Forget everything written since ``mark``."""
        raise NotImplementedError

    def cut(self, mark: int) -> ReplyPart:
        """Take away what was collected since then, for :meth:`paste`."""
        raise NotImplementedError

    def paste(self, part: ReplyPart) -> None:
        """Collect what was cut from this sink before."""
        raise NotImplementedError

    def speaking(self, version: int) -> ReplySink:
        """The sink to use instead of this one for answers in RESP2 or RESP3: it holds what this one
        held, marks mean there what they meant here, and this one is empty."""
        raise NotImplementedError


@mypyc_attr(allow_interpreted_subclasses=True)
class LogSink:
    """Where a node records what must survive a restart (cluster protocol, section 14.3)."""

    def load_job(self, job: JobRecord) -> None:
        """The job exists, in its present state."""
        raise NotImplementedError

    def delete_job(self, job_id: bytes) -> None:
        """The job is gone."""
        raise NotImplementedError

    def note_job(self, job_id: bytes, owner: bytes, data: bytes) -> None:
        """A protocol of a listener, ``owner``, noted this about the job."""
        raise NotImplementedError

    def count_job(self, job_id: bytes, nacks: i64, deliveries: i64) -> None:
        """The job came back so often, by NACK and otherwise."""
        raise NotImplementedError

    def hold_key(self, entry: KeyEntry) -> None:
        """A job has the key, as the entry says; its times are unix milliseconds."""
        raise NotImplementedError

    def free_key(self, key: bytes) -> None:
        """The key is free."""
        raise NotImplementedError
