"""Commands on queues (client protocol, section 19) and the scan over jobs (section 18)."""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from disque_tx.commands.base.arguments import cursor, required_integer
from disque_tx.commands.base.context import Server
from disque_tx.commands.jobs.jobs import show_job
from disque_tx.core.base.bounds import check_glob
from disque_tx.core.base.client import Client
from disque_tx.core.jobs.job import Job
from disque_tx.core.queues.pausing import Pause
from disque_tx.core.queues.queues import (
    PAUSE_ALL,
    PAUSE_IN,
    PAUSE_NAMES,
    PAUSE_NONE,
    PAUSE_OUT,
    Queue,
)
from disque_tx.errors import CommandError, syntax_error
from disque_tx.messages.records import STATE_NAMES, ReplySink
from disque_tx.text.globs import Glob
from disque_tx.text.letters import letter_outline, letter_reason

_PAUSE_OPTIONS: Final = {b"IN": PAUSE_IN, b"OUT": PAUSE_OUT, b"ALL": PAUSE_ALL}
#: Parts of the table looked at per item wanted, when few items match.
_PARTS_PER_ITEM: Final = 10
_DEFAULT_COUNT: Final = 100
#: What one call returns at the most without BUSYLOOP, and the buckets that it looks at.
SCANNED_MAX: Final = 10_000
_PARTS_MAX: Final = 20_000
#: Bytes of jobs that one call describes, and of letters that it reads. A job counts as some more
#: bytes than its body has, a letter as a part of them: most of it is skipped.
REPLY_BYTES_MAX: Final = 8 * 1024 * 1024
#: Bytes of bodies in the answer to one QPEEK of a reader: ten that ask at once, by TLS, hold up
#: others for a moment only.
_PEEKED_BYTES_MAX: Final = 2 * 1024 * 1024
_SHOWN_BYTES: Final = 16 * 1024
READ_BYTES_MAX: Final = 512 * 1024
_LOOKED_BYTES: Final = 256
_SKIPPED: Final = 64
_FOR_READERS: Final = "with the read-only password"
_NO_FILTER: Final = -1
_NS_PER_MS: Final = 1_000_000


def qlen(server: Server, client: Client, argv: list[bytes]) -> None:
    """QLEN queue"""
    queue = server.node.queues.get(argv[1])
    client.replies.integer(0 if queue is None else queue.jobs.size)


def qpeek(server: Server, client: Client, argv: list[bytes]) -> None:
    """QPEEK queue count"""
    count = required_integer(argv[2])
    queue = server.node.queues.get(argv[1])
    jobs: list[Job] = []
    if client.reader and abs(count) > SCANNED_MAX:
        raise CommandError(
            "ERR", f"count must be between -{SCANNED_MAX} and {SCANNED_MAX} {_FOR_READERS}"
        )
    if queue is not None and count != 0:
        # Never more than are there: what follows computes in the machine's words. The comparison
        # does not, since the count without its sign may be 2 ** 63.
        held: int = queue.jobs.size
        wanted = min(abs(count), held)
        jobs = queue.jobs.oldest(wanted) if count > 0 else queue.jobs.newest(wanted)
    client.replies.jobs(list(_first_bytes(jobs) if client.reader else jobs), False)


def _first_bytes(jobs: list[Job]) -> list[Job]:
    """The number of jobs that one answer to a reader describes; at least the first."""
    size: i64 = 0
    for place in range(len(jobs)):
        size += jobs[place].body_bytes
        if place and size > _PEEKED_BYTES_MAX:
            return jobs[:place]
    return jobs


def qstat(server: Server, client: Client, argv: list[bytes]) -> None:
    """QSTAT queue [WITHPAUSE]"""
    told = len(argv) > 2
    queue = server.node.queues.get(argv[1])
    replies = client.replies
    if queue is None:
        replies.null_array()
        return
    now_ms = server.node.now_ms
    replies.array(24 if told else 20)
    replies.bulk(b"name")
    replies.bulk(queue.name)
    numbers: list[tuple[bytes, int]] = [
        (b"len", queue.jobs.size),
        (b"age", (now_ms - queue.created_ms) // 1000),
        (b"idle", (now_ms - queue.used_ms) // 1000),
        (b"blocked", queue.blocked()),
    ]
    for name, value in numbers:
        replies.bulk(name)
        replies.integer(value)
    sources: list[bytes] = []
    if queue.imports is not None:
        sources = queue.imports.recent_givers(now_ms)
    replies.bulk(b"import-from")
    replies.array(len(sources))
    for source in sources:
        replies.bulk(source)
    numbers = [
        (b"import-rate", queue.import_rate(now_ms)),
        (b"jobs-in", queue.jobs_in),
        (b"jobs-out", queue.jobs_out),
    ]
    for name, value in numbers:
        replies.bulk(name)
        replies.integer(value)
    replies.bulk(b"pause")
    replies.bulk(PAUSE_NAMES[queue.paused])
    if told:
        _show_pause(replies, server.node.pausing.kept.get(queue.name))


def _show_pause(replies: ReplySink, said: Pause | None) -> None:
    """Who paused a queue by PAUSE, and when."""
    replies.bulk(b"paused-by")
    replies.bulk(b"" if said is None else said.who)
    replies.bulk(b"paused-at")
    replies.integer(0 if said is None else said.at_s)


def pause(server: Server, client: Client, argv: list[bytes]) -> None:
    """PAUSE queue option [option ...]"""
    server.node.queues.check(argv[1])
    flags = PAUSE_NONE
    change = False
    everywhere = False
    processes = False
    for word in argv[2:]:
        option = word.upper()
        if option == b"NONE":
            flags = PAUSE_NONE
            change = True
        elif option in _PAUSE_OPTIONS:
            flags |= _PAUSE_OPTIONS[option]
            change = True
        elif option == b"BCAST":
            everywhere = True
        elif option == b"PROCESSES":
            processes = True
        elif option != b"STATE":
            raise syntax_error()
    if change:
        who = client.addr + b" " + client.name if client.name else client.addr
        server.node.pause(argv[1], flags, who)
    queue = server.node.queues.get(argv[1])
    if everywhere or processes:
        said = PAUSE_NONE if queue is None else queue.paused_by_command
        if everywhere:
            server.node.pause_everywhere(argv[1], said)
        else:
            server.node.pause_processes(argv[1], said)
    client.replies.status(PAUSE_NAMES[server.node.queues.paused(argv[1])])


class _Scan:
    """The words of a QSCAN or JSCAN: cursor, COUNT, BUSYLOOP, and its filters. ``read``,
    ``shown``: bytes so far."""

    def __init__(self, client: Client, argv: list[bytes], valued: tuple[bytes, ...]) -> None:
        self.read = 0
        self.shown = 0
        self.cursor = 0
        self.count = _DEFAULT_COUNT
        self.busy_loop = False
        self.options: list[tuple[bytes, bytes]] = []
        seen_cursor = False
        at = 1
        while at < len(argv):
            word = argv[at].upper()
            value = argv[at + 1] if at + 1 < len(argv) else None
            if word == b"BUSYLOOP":
                self.busy_loop = True
            elif word == b"COUNT" and value is not None:
                self.count = required_integer(value)
                at += 1
            elif word in valued and value is not None:
                self._filter(word, value)
                at += 1
            elif seen_cursor:
                raise syntax_error()
            else:
                self.cursor = cursor(argv[at])
                seen_cursor = True
            at += 1
        if client.reader and not 1 <= self.count <= SCANNED_MAX:
            raise CommandError("ERR", f"COUNT must be between 1 and {SCANNED_MAX} {_FOR_READERS}")

    def _filter(self, word: bytes, value: bytes) -> None:
        """Check a filter where it occurs: the first malformed word determines the error."""
        if word == b"STATE":
            if value.lower() not in STATE_NAMES:
                raise CommandError("ERR", "Invalid job state name")
            value = value.lower()
        elif word == b"REPLY":
            if value.upper() not in (b"ID", b"ALL"):
                raise CommandError("ERR", "Invalid REPLY type, try ID or ALL")
            value = value.upper()
        elif word == b"REASON":
            check_glob("REASON", value)
        elif word != b"QUEUE":
            required_integer(value)
        self.options.append((word, value))

    def number(self, name: bytes) -> int:
        """The last value of a numeric filter, -1 for none."""
        result = _NO_FILTER
        for word, value in self.options:
            if word == name:
                result = required_integer(value)
        return result

    def finished(self, items: int, parts: int) -> bool:
        """Whether this call has returned, or scanned, as much as it was asked for, or may."""
        if self.shown >= REPLY_BYTES_MAX:
            return True
        if self.busy_loop or self.count < 0:
            return False
        if self.read >= READ_BYTES_MAX:
            return True
        count = min(self.count, SCANNED_MAX)
        return items >= count or parts >= min(count * _PARTS_PER_ITEM, _PARTS_MAX)


def qscan(server: Server, client: Client, argv: list[bytes]) -> None:
    """QSCAN [cursor] [COUNT n] [BUSYLOOP] [MINLEN n] [MAXLEN n] [IMPORTRATE n]"""
    scan = _Scan(client, argv, (b"MINLEN", b"MAXLEN", b"IMPORTRATE"))
    least = scan.number(b"MINLEN")
    most = scan.number(b"MAXLEN")
    rate = scan.number(b"IMPORTRATE")
    now_ms = server.node.now_ms
    found: list[Queue] = []
    position = scan.cursor
    parts = 0
    while True:
        position, queues = server.node.queues.table.scan(position)
        parts += 1
        for queue in queues:
            size = queue.jobs.size
            if (
                (least == _NO_FILTER or size >= least)
                and (most == _NO_FILTER or size <= most)
                and (rate == _NO_FILTER or queue.import_rate(now_ms) >= rate)
            ):
                found.append(queue)
        if position == 0 or scan.finished(len(found), parts):
            break
    replies = client.replies
    replies.array(2)
    replies.bulk(b"%d" % position)
    replies.array(len(found))
    for queue in found:
        replies.bulk(queue.name)


def jscan(server: Server, client: Client, argv: list[bytes]) -> None:
    """JSCAN [cursor] [COUNT n] [BUSYLOOP] [QUEUE name] [STATE s]... [REPLY id|all] [SINCE ms]
    [UNTIL ms] [REASON glob]"""
    scan = _Scan(client, argv, (b"QUEUE", b"STATE", b"REPLY", b"SINCE", b"UNTIL", b"REASON"))
    since_ms, until_ms = scan.number(b"SINCE"), scan.number(b"UNTIL")
    queue: bytes | None = None
    reason: Glob | None = None
    states: list[int] = []
    everything = False
    for word, value in scan.options:
        if word == b"QUEUE":
            queue = value
        elif word == b"STATE":
            states.append(STATE_NAMES.index(value))
        elif word == b"REPLY":
            everything = value == b"ALL"
        elif word == b"REASON":
            reason = Glob(value)
    found: list[Job] = []
    position = scan.cursor
    parts = 0
    while True:
        position, jobs = server.node.jobs.table.scan(position)
        parts += 1
        for job in jobs:
            if (
                not job.dummy
                and (queue is None or job.queue == queue)
                and (not states or job.state in states)
                and (since_ms == _NO_FILTER or job.ctime // _NS_PER_MS >= since_ms)
                and (until_ms == _NO_FILTER or job.ctime // _NS_PER_MS < until_ms)
                and (reason is None or _came_back_for(server, job, reason, scan))
            ):
                found.append(job)
                if everything:
                    scan.shown += job.body_bytes + _SHOWN_BYTES
        if position == 0 or scan.finished(len(found), parts):
            break
    replies = client.replies
    replies.array(2)
    replies.bulk(b"%d" % position)
    replies.array(len(found))
    now_ms, reports = server.node.now_ms, server.node.state.progress
    for job in found:
        if everything:
            show_job(replies, job, now_ms, reports)
        else:
            replies.status(job.id)


def _came_back_for(server: Server, job: Job, pattern: Glob, scan: _Scan) -> bool:
    """Whether a consumer returned the job for a reason like this, or it is a letter that names
    one."""
    reason = server.node.state.reasons.get(job.id)
    if not reason:
        outline = letter_outline(job.body)
        scan.read += _LOOKED_BYTES + len(outline) + job.body_bytes // _SKIPPED
        reason = letter_reason(outline)
    return reason != b"" and pattern.matches(reason)
