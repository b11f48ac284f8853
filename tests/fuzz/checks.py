"""Properties that hold for any bytes, checked by Hypothesis in the tests and by the fuzzers.

A check returns if the bytes were decoded correctly, or refused with ``PeerError``.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from itertools import pairwise
from pathlib import Path

from disque_tx.errors import PeerError
from disque_tx.messages.bus import (
    Bulk,
    Gossip,
    GossipEntry,
    JobSignal,
    JobsMessage,
    Message,
    NodeFailed,
    QueueSignal,
)
from disque_tx.messages.bustypes import GOTJOB, SETACK
from disque_tx.messages.nodes import MYSELF
from disque_tx.messages.records import DELIVERED, JobRecord
from disque_tx.messages.tables import Register, TableChange, TableDigest, TablePull
from disque_tx.wire.bus.parser import STRANGER_BYTES_MAX, BusParser, encode
from disque_tx.wire.files.nodes import parse, render
from disque_tx.wire.files.tables import POLICIES
from disque_tx.wire.files.tables import checksum as policies_checksum
from disque_tx.wire.files.tables import parse as parse_policies
from disque_tx.wire.files.tables import render as render_policies
from disque_tx.wire.jobs.codec import RecordReader, decode_moving, decode_stored, encode_stored

VALUE = Register(b"a*", b"ttl", b"5", 1, b"a" * 40)
DELETION = Register(b"b c", b"x", b"", 2, b"b" * 40, 9)
VECTORS = Path(__file__).parent.parent / "vectors"


def bus_seeds() -> list[bytes]:
    """Messages of the original, of all types."""
    files = sorted((VECTORS / "bus").glob("*.json"))
    return [bytes.fromhex(row["hex"]) for file in files for row in json.loads(file.read_bytes())]


def own_seeds() -> list[bytes]:
    """Those, and what is ours: many of them as one."""
    seeds = bus_seeds()
    signals = [message for data in seeds for message in parsed([data])[0] if _hot(message)]
    bulk = Bulk(signals)
    registers = [VALUE, DELETION]
    own = (bulk, TableChange(registers, True), TableDigest(1, 2), TablePull(b"a*", b"ttl"))
    for message in own:
        message.sender = signals[0].sender
    return [*seeds, *(encode(message) for message in own)]


def policiesfile_seeds() -> list[bytes]:
    """Policies files."""
    return [render_policies([], 0), render_policies([VALUE, DELETION], 3)]


def _hot(message: Message) -> bool:
    """Whether it can be a part of a bulk."""
    return isinstance(message, JobSignal) and message.type in (GOTJOB, SETACK)


def job_seeds() -> list[bytes]:
    """The job records in those messages."""
    jobs = [job for message in bus_seeds() for job in _jobs(message)]
    return [encode_stored(job) for job in jobs]


def _jobs(data: bytes) -> list[JobRecord]:
    (message,), _ = parsed([data])
    return message.jobs if isinstance(message, JobsMessage) else []


def nodesfile_seeds() -> list[bytes]:
    """Nodes files of the original."""
    return [file.read_bytes() for file in sorted((VECTORS / "nodes-conf").glob("*.conf"))]


def job_fields(job: JobRecord) -> tuple[object, ...]:
    """All transmitted fields of a job, except its expiry."""
    return (
        *(job.id, job.queue, job.body, job.nodes, job.ctime, job.delay_s, job.retry_s),
        *(job.repl, job.state, job.flags & ~DELIVERED, job.nacks, job.deliveries),
    )


def entry_fields(entry: GossipEntry) -> tuple[object, ...]:
    """All fields of a gossip entry."""
    return (
        *(entry.id, entry.ip, entry.port, entry.flags),
        *(entry.ping_sent_ms, entry.pong_received_ms, entry.bus_port),
    )


def body_fields(message: Message) -> tuple[object, ...]:
    """All fields in the body of a message, depending on its type."""
    if isinstance(message, Gossip):
        return tuple(entry_fields(entry) for entry in message.entries)
    if isinstance(message, JobsMessage):
        return (*map(job_fields, message.jobs), tuple(message.lives_s))
    if isinstance(message, JobSignal):
        return message.job_id, message.aux
    if isinstance(message, Bulk):
        return tuple(message_fields(one) for one in message.messages)
    if isinstance(message, QueueSignal):
        return message.queue, message.aux
    if isinstance(message, TableChange):
        registers = tuple(register.fields() for register in message.registers)
        return message.table, message.pulled, message.last, registers
    if isinstance(message, TableDigest):
        return message.table, message.registers, message.digest
    if isinstance(message, TablePull):
        return message.table, message.pattern, message.name
    assert isinstance(message, NodeFailed)
    return (message.about,)


def message_fields(message: Message) -> tuple[object, ...]:
    """All fields that are preserved when a message is encoded and decoded."""
    return (
        *(message.type, message.sender, message.port, message.flags, message.mflags),
        *(message.ip, message.bus_port, message.epoch, message.serial, message.features),
        *body_fields(message),
    )


def parsed(chunks: Iterable[bytes]) -> tuple[list[Message], tuple[object, ...]]:
    """The messages in a stream that arrives in chunks; how it ended, as comparable values."""
    parser = BusParser(STRANGER_BYTES_MAX)
    messages: list[Message] = []
    error = ""
    try:
        for chunk in chunks:
            parser.feed(chunk)
            while (message := parser.next()) is not None:
                messages.append(message)
    except PeerError as caught:
        error = str(caught)
    rest = 0 if error else parser.pending_bytes()
    return messages, (error, parser.received, parser.ignored, rest)


def cut(data: bytes, cuts: Iterable[int]) -> list[bytes]:
    """``data`` in pieces that end at ``cuts`` and at its end."""
    marks = [0, *sorted(at % (len(data) + 1) for at in cuts), len(data)]
    return [data[start:end] for start, end in pairwise(marks)]


def check_bus(data: bytes, cuts: Iterable[int] = ()) -> None:
    """The result is independent of how the stream is cut, and all messages can be encoded again."""
    messages, end = parsed([data])
    whole = [message_fields(message) for message in messages]
    for chunks in (cut(data, cuts), cut(data, range(len(data)))):
        again, its_end = parsed(chunks)
        assert its_end == end, (its_end, end)
        assert [message_fields(message) for message in again] == whole
    for message in messages:
        resent, (error, *_) = parsed([encode(message)])
        assert not error, error
        assert message_fields(resent[0]) == message_fields(message)


def check_job(data: bytes) -> None:
    """The record is a job or refused, whatever surrounds it, and a job can be stored."""
    try:
        job = decode_stored(data)
    except PeerError as refused:
        try:
            decode_moving(b"\xff" * 7 + data + b"\xff" * 200, 7, 7 + len(data), RecordReader())
        except PeerError as caught:
            assert str(caught) == str(refused), (caught, refused)
            return
        raise AssertionError("refused when stored, taken in a message") from refused
    moving, life_s, behind = decode_moving(
        b"\xff" * 7 + data + b"\xff", 7, 7 + len(data), RecordReader()
    )
    stored = encode_stored(job)
    assert (life_s, behind - 7) == (job.etime_s, len(stored))
    assert job_fields(moving) == job_fields(job) == job_fields(decode_stored(stored))
    assert stored[:44] + stored[45:] == data[:44] + data[45 : len(stored)]


def check_nodesfile(data: bytes) -> None:
    """The readable part of the file is a table of distinct nodes that can be saved."""
    entries, faults = parse(data, 2_000)
    mine = [entry for entry in entries if entry.flags & MYSELF]
    assert len({entry.id for entry in entries}) == len(entries)
    assert len(mine) <= 1
    assert mine or faults or not data
    saved = render(entries, 1_000)
    assert render(parse(saved, 2_000)[0], 1_000) == saved


def check_policiesfile(data: bytes) -> None:
    """The file is refused, or what it holds can be saved; also when its checksum is right."""
    head = data.rpartition(b"checksum ")[0]
    for text in (data, head + b"checksum " + policies_checksum(head) + b"\n"):
        try:
            registers, generation, greatest = parse_policies(text)
        except PeerError:
            continue
        rendered = render_policies(registers, greatest, POLICIES, generation)
        again, number, counter = parse_policies(rendered)
        assert (number, counter) == (generation, greatest)
        assert [one.fields() for one in again] == [one.fields() for one in registers]


def http_seeds() -> list[bytes]:
    """Requests of all kinds."""
    head = b"POST /api/v1/queues/a%2Fb/jobs HTTP/1.1\r\nHost: localhost\r\n"
    chunked = b"Transfer-Encoding: chunked\r\nContent-Type: application/json\r\n\r\n"
    return [
        b"GET /healthz/live HTTP/1.1\r\nHost: [::1]:7780\r\n\r\n" * 2,
        head + chunked + b'c\r\n{"body":"x"}\r\n0\r\n\r\n',
        head + b"Content-Length: 2\r\nAuthorization: Basic eDp5\r\nOrigin: null\r\n\r\n{}",
        b"HEAD /x?queue=a.*%7Cb HTTP/1.0\r\nHost: localhost\r\nConnection: close\r\n\r\n",
    ]


def check_http(data: bytes) -> None:
    """However the bytes are cut, the answers are the same, whole, and none is a fault."""
    from tests.fuzz.httpcheck import answers

    whole = answers([data])
    assert whole == answers(cut(data, range(len(data))))
    assert b" 500 " not in whole


def check_beanstalk(data: bytes) -> None:
    """However the bytes are cut, the replies are the same, and nothing is left of the client."""
    from tests.fuzz.beanstalkcheck import replies

    assert replies([data]) == replies(cut(data, range(len(data))))


def beanstalk_seeds() -> list[bytes]:
    """Requests of all kinds."""
    from tests.fuzz.beanstalkcheck import SEEDS

    return list(SEEDS)


#: Fuzzing target → its check, and its initial inputs.
TARGETS: dict[str, tuple[Callable[[bytes], None], Callable[[], list[bytes]]]] = {
    "bus": (check_bus, own_seeds),
    "job": (check_job, job_seeds),
    "nodesfile": (check_nodesfile, nodesfile_seeds),
    "policiesfile": (check_policiesfile, policiesfile_seeds),
    "http": (check_http, http_seeds),
    "beanstalk": (check_beanstalk, beanstalk_seeds),
}
