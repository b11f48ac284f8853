"""The requests besides put, reserve and delete."""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from disque_tx.plugins.direct import Job
from disque_tx.protocols.beanstalk import requests
from disque_tx.protocols.beanstalk.client import TubeClient
from disque_tx.protocols.beanstalk.jobs import TubeJob
from disque_tx.protocols.beanstalk.stats import (
    job_stats,
    listed,
    node_stats,
    tube_names,
    tube_stats,
)

#: Jobs that one kick moves at the most.
KICKS_MAX: Final = 1_000
_BAD_FORMAT: Final = b"BAD_FORMAT\r\n"
_UNKNOWN: Final = b"UNKNOWN_COMMAND\r\n"
_NOT_FOUND: Final = b"NOT_FOUND\r\n"
#: Delays of releases are no longer than this, in seconds: 25 years.
_DELAY_S_MAX: Final = 25 * 366 * 86_400


class OtherRequests:
    """Of one client."""

    def __init__(self, connection: TubeClient) -> None:
        self._connection: TubeClient = connection
        self._tubes = connection.tubes
        self._node = connection.tubes.node

    def closed(self) -> None:
        """The connection is gone: it uses and watches no tubes."""
        connection = self._connection
        connection.used.using -= 1
        self._tubes.release(connection.used)
        for tube in connection.watched.values():
            tube.watching -= 1
            self._tubes.release(tube)
        connection.watched = {}
        connection.names = []

    def run(self, request: int, rest: bytes) -> None:
        """Execute one; raises ``CommandError`` when the node refuses."""
        if request <= requests.TOUCH:
            self._reply(self._on_reserved(request, rest))
        elif request <= requests.IGNORE:
            self._reply(self._choose_tube(request, rest))
        elif request == requests.PEEK or requests.PEEK_READY <= request <= requests.PEEK_BURIED:
            self._peek(request, rest)
        elif request == requests.KICK:
            self._reply(self._kick(rest))
        elif request == requests.KICK_JOB:
            self._reply(self._kick_job(requests.job_number(rest)))
        elif request == requests.PAUSE_TUBE:
            self._reply(self._pause(rest))
        elif request == requests.UNKNOWN:
            self._reply(_UNKNOWN)
        elif request == requests.MALFORMED:
            self._reply(_BAD_FORMAT)
        elif request == requests.QUIT:
            if self._connection.client is not None:
                self._connection.client.closing = True
        else:
            self._reply(self._report(request, rest))

    def _reply(self, data: bytes) -> None:
        if data in (_BAD_FORMAT, _UNKNOWN):
            self._connection.refuse(data)
        elif data:
            self._connection.write(data)

    def _client_job(self, number: int) -> TubeJob | None:
        """A job that this client reserved."""
        entry = self._tubes.by_number.get(number)
        return entry if entry is not None and entry.holder is self._connection else None

    # -- jobs --------------------------------------------------------------------------------

    def _on_reserved(self, request: int, rest: bytes) -> bytes:
        if request == requests.RESERVE_JOB:
            return self._reserve_job(requests.job_number(rest))
        if request == requests.TOUCH:
            return self._touch(requests.job_number(rest))
        found = requests.job_number_and(rest, 2 if request == requests.RELEASE else 1)
        if found is None:
            return _BAD_FORMAT
        number, values = found
        entry = self._client_job(number)
        job = None if entry is None else entry.job
        if entry is None or job is None:
            return _NOT_FOUND
        if job.retry_s == 0:  # delivered once, and never again
            return _NOT_FOUND
        client = self._connection.client
        assert client is not None
        self._node.check_nack(client)  # a job that stays with the client is not changed
        entry.drop_holder()
        job.priority = values[0]
        if request == requests.BURY:
            return self._bury(entry, job)
        return self._release(entry, job, values[1])

    def _release(self, entry: TubeJob, job: Job, delay_s: i64) -> bytes:
        client = self._connection.client
        assert client is not None
        delay_s = min(delay_s, _DELAY_S_MAX)
        entry.releases += 1
        entry.delay_s = delay_s
        entry.due_ms = self._node.now_ms() + delay_s * 1000
        entry.until_ms = self._node.wall_ms() + delay_s * 1000 if delay_s > 0 else 0
        if not self._node.give_back(client, job, delay_s * 1000):
            return _NOT_FOUND
        self._keep_note(entry, job)
        return b"RELEASED\r\n"

    def _bury(self, entry: TubeJob, job: Job) -> bytes:
        client = self._connection.client
        assert client is not None
        entry.buries += 1
        self._tubes.bury(entry)
        if not self._node.hold(client, job):
            entry.unbury()
            return _NOT_FOUND
        self._keep_note(entry, job)
        return b"BURIED\r\n"

    def _keep_note(self, entry: TubeJob, job: Job) -> None:
        if entry.number in self._tubes.by_number:
            self._node.note(job, entry)

    def _touch(self, number: int) -> bytes:
        if number < 0:
            return _BAD_FORMAT
        entry = self._client_job(number)
        client = self._connection.client
        if entry is None or entry.job is None or client is None:
            return _NOT_FOUND
        self._node.renew(client, entry.job)
        self._connection.renewed(entry)
        return b"TOUCHED\r\n"

    def _reserve_job(self, number: int) -> bytes:
        if number < 0:
            return _BAD_FORMAT
        entry = self._tubes.by_number.get(number)
        job = None if entry is None else entry.job
        client = self._connection.client
        if entry is None or job is None or client is None:
            return _NOT_FOUND
        if not self._node.take_this(client, job):
            return _NOT_FOUND
        was_buried = entry.buried
        self._connection.give(job)
        if was_buried:
            self._keep_note(entry, job)
        return b""

    def _peek(self, request: int, rest: bytes) -> None:
        connection = self._connection
        tube = connection.used
        entry: TubeJob | None = None
        if request == requests.PEEK:
            number = requests.job_number(rest)
            if number < 0:
                self._reply(_BAD_FORMAT)
                return
            entry = self._tubes.by_number.get(number)
        elif request == requests.PEEK_READY:
            queue = self._node.queue(tube.name)
            first = None if queue is None else queue.jobs.first()
            if first is not None:
                entry = self._tubes.entry_of(first)
        elif request == requests.PEEK_DELAYED:
            entry = tube.delayed.first()
        elif tube.buried:
            entry = next(iter(tube.buried))
        if entry is None or entry.job is None:
            self._reply(_NOT_FOUND)
        else:
            connection.write_job(b"FOUND", entry, entry.job)

    # -- kick --------------------------------------------------------------------------------

    def _kick(self, rest: bytes) -> bytes:
        found = requests.numbers(rest, 1, 1 << 40)
        if found is None:
            return _BAD_FORMAT
        tube = self._connection.used
        kicked = 0
        buried = bool(tube.buried)
        while kicked < min(found[0], KICKS_MAX):
            entry = next(iter(tube.buried), None) if buried else tube.delayed.first()
            if entry is None:
                break
            if not self._make_ready(entry):
                break
            kicked += 1
        return b"KICKED %d\r\n" % kicked

    def _kick_job(self, number: int) -> bytes:
        if number < 0:
            return _BAD_FORMAT
        entry = self._tubes.by_number.get(number)
        if entry is None or not (entry.buried or entry.is_delayed()):
            return _NOT_FOUND
        return b"KICKED\r\n" if self._make_ready(entry) else _NOT_FOUND

    def _make_ready(self, entry: TubeJob) -> bool:
        """Queue a job that is buried or delayed."""
        job = entry.job
        client = self._connection.client
        assert client is not None
        if job is None:
            return False
        self._node.check_enqueue(client)  # a job that stays buried is not changed
        entry.unbury()
        entry.until_ms = 0
        entry.kicks += 1
        made = self._node.make_ready(client, job)
        self._keep_note(entry, job)
        return made

    # -- tubes -------------------------------------------------------------------------------

    def _choose_tube(self, request: int, name: bytes) -> bytes:
        if not requests.is_name(name):
            return _BAD_FORMAT
        connection = self._connection
        tubes = self._tubes
        if request == requests.USE:
            tube = tubes.obtain(name)
            tube.using += 1
            connection.used.using -= 1
            tubes.release(connection.used)
            connection.used = tube
            return b"USING %s\r\n" % name
        if request == requests.WATCH:
            if name not in connection.watched:
                tube = tubes.obtain(name)
                tube.watching += 1
                connection.watched[name] = tube
        elif name in connection.watched:
            if len(connection.watched) < 2:
                return b"NOT_IGNORED\r\n"
            tube = connection.watched.pop(name)
            tube.watching -= 1
            tubes.release(tube)
        connection.names = list(connection.watched)
        return b"WATCHING %d\r\n" % len(connection.names)

    def _pause(self, rest: bytes) -> bytes:
        name, _, text = rest.lstrip(b" ").partition(b" ")
        found = requests.numbers(text, 1)
        if found is None or not requests.is_name(name):
            return _BAD_FORMAT
        if not self._tubes.is_known(name):
            return _NOT_FOUND
        client = self._connection.client
        assert client is not None
        tube = self._tubes.obtain(name)
        tube.pauses += 1
        self._node.pause(client, name, found[0] > 0)
        if found[0] > 0:
            self._tubes.pause(tube, found[0])
        else:
            self._tubes.resume(tube)
        return b"PAUSED\r\n"

    # -- reports -----------------------------------------------------------------------------

    def _report(self, request: int, rest: bytes) -> bytes:
        tubes = self._tubes
        if request == requests.LIST_TUBE_USED:
            return b"USING %s\r\n" % self._connection.used.name
        if request == requests.LIST_TUBES_WATCHED:
            return listed(self._connection.names)
        if request == requests.LIST_TUBES:
            return listed(tube_names(tubes))
        if request == requests.STATS:
            return node_stats(tubes)
        if request == requests.STATS_TUBE:
            if not requests.is_name(rest):
                return _BAD_FORMAT
            return tube_stats(tubes, rest) if tubes.is_known(rest) else _NOT_FOUND
        number = requests.job_number(rest)
        if number < 0:
            return _BAD_FORMAT
        entry = tubes.by_number.get(number)
        return _NOT_FOUND if entry is None or entry.job is None else job_stats(tubes, entry)
