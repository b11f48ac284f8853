"""One connection of beanstalkd's protocol: from bytes to requests, and the hot ones of them."""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from disque_tx.errors import CommandError
from disque_tx.plugins.direct import AddRequest, Job, JobRecord
from disque_tx.protocols.beanstalk import intake, requests
from disque_tx.protocols.beanstalk.client import MARGIN_MS, TubeClient
from disque_tx.protocols.beanstalk.intake import Intake
from disque_tx.protocols.beanstalk.jobs import TubeJob
from disque_tx.protocols.beanstalk.others import OtherRequests
from disque_tx.protocols.beanstalk.tubes import Tubes

#: TTL of jobs: beanstalkd's have none. 50 years.
TTL_S: Final = 50 * 366 * 86_400
#: How long a put waits for its copies.
_COPIES_MS: Final = 5_000
#: What a client may send while it waits, besides one job.
_UNREAD_BYTES: Final = 1 << 20
_BAD_FORMAT: Final = b"BAD_FORMAT\r\n"
_NOT_FOUND: Final = b"NOT_FOUND\r\n"
_DRAINING: Final = b"DRAINING\r\n"
_DRAINS: Final = ("LEAVING", "PAUSED")
_NO_ROOM: Final = ("OOM", "MAXLEN")


def refusal(error: CommandError) -> bytes:
    """The reply for what the node refuses."""
    if error.code in _DRAINS:
        return _DRAINING
    return b"OUT_OF_MEMORY\r\n" if error.code in _NO_ROOM else b"INTERNAL_ERROR\r\n"


class BeanstalkConnection(TubeClient):
    """``producer``, ``worker``: whether the client ever put, or reserved."""

    def __init__(self, tubes: Tubes) -> None:
        super().__init__(tubes)
        self.unread_max = _UNREAD_BYTES + tubes.job_bytes_max()
        self.producer: bool = False
        self.worker: bool = False
        tubes.connections += 1
        tubes.connected += 1
        self._node = tubes.node
        self._others: OtherRequests = OtherRequests(self)
        self._intake: Intake = Intake()
        # Of the put whose body is awaited.
        self._priority: i64 = 0
        self._delay_s: i64 = 0
        self._ttr_s: i64 = 0
        self._putting: TubeJob | None = None
        self._waiting: bool = False
        self._again: bool = False
        self._until_ms: i64 = 0

    # -- requests ----------------------------------------------------------------------------

    def feed(self, data: bytes) -> None:
        self._intake.feed(data)

    def unread(self) -> int:
        return self._intake.unread()

    def step(self) -> bool:
        if self._again:
            self._again = False
            left_ms = self._until_ms - self._node.now_ms()
            self._reserve(-1 if self._until_ms == 0 else max(1, left_ms))
            return True
        found = self._intake.next()
        if found == intake.NOTHING:
            return False
        if found == intake.LINE:
            self._run(self._intake.taken)
        elif found == intake.BODY:
            self._put_body(self._intake.taken)
        elif found == intake.NO_BODY:
            self.refuse(b"EXPECTED_CRLF\r\n")
        elif found == intake.SKIPPED:
            self.refuse(b"JOB_TOO_BIG\r\n")
        else:
            self.refuse(_BAD_FORMAT)
        return True

    def _run(self, line: bytes) -> None:
        counts = self.tubes.counts
        if line.startswith(b"put "):
            self._put(line[4:])
            return
        try:
            if line == b"reserve":
                counts[requests.RESERVE] += 1
                self._reserve(-1)
                return
            if line.startswith(b"delete "):
                counts[requests.DELETE] += 1
                self._delete(requests.job_number(line[7:]))
                return
            request, rest = requests.request_of(line)
            counts[request] += 1
            if request == requests.RESERVE_WITH_TIMEOUT:
                found = requests.numbers(rest, 1, 1 << 40)
                if found is None:
                    self.refuse(_BAD_FORMAT)
                else:
                    self._reserve(found[0] * 1000)
            else:
                self._others.run(request, rest)
        except CommandError as error:
            self.refuse(refusal(error))

    def _put(self, rest: bytes) -> None:
        found = requests.numbers(rest, 4)
        if found is None:
            self.refuse(_BAD_FORMAT)
            return
        self.tubes.counts[requests.PUT] += 1
        if not self.producer:
            self.producer = True
            self.tubes.producers += 1
        size: i64 = found[3]
        if size > self.tubes.job_bytes_max():
            self._intake.skip_body(size)
            return
        self._priority = found[0]
        self._delay_s = found[1]
        self._ttr_s = found[2]
        self._intake.expect_body(size)

    def _put_body(self, body: bytes) -> None:
        if self._node.is_leaving():
            self.refuse(_DRAINING)
            return
        tube = self.used
        delay_s = min(self._delay_s, TTL_S // 2)
        entry = TubeJob(self.tubes, tube, delay_s)
        entry.restarts = True
        request = AddRequest(tube.name, body)
        request.priority = self._priority
        request.delay_s = delay_s
        request.retry_s = max(1, self._ttr_s)
        request.ttl_s = TTL_S
        request.replicate = self.tubes.replicate()
        request.timeout_ms = _COPIES_MS
        request.note = entry
        if delay_s > 0:
            entry.due_ms = self._node.now_ms() + delay_s * 1000
        self._putting = entry
        client = self.client
        assert client is not None
        try:
            self._node.add(client, request)
        except CommandError as error:
            self._putting = None
            self.refuse(refusal(error))

    def _delete(self, number: int) -> None:
        if number < 0:
            self.refuse(_BAD_FORMAT)
            return
        entry = self.tubes.by_number.get(number)
        job = None if entry is None else entry.job
        client = self.client
        if entry is None or job is None or client is None:
            self.write(_NOT_FOUND)
            return
        if entry.holder is not self:
            if not (entry.is_ready() or entry.buried or entry.is_delayed()):
                self.write(_NOT_FOUND)
                return
        tube = entry.tube
        self._node.finish(client, job)
        tube.deletes += 1
        self.write(b"DELETED\r\n")

    # -- reserving ---------------------------------------------------------------------------

    def _reserve(self, timeout_ms: i64) -> None:
        """Reserve a job, or wait for one for so long; -1 forever."""
        if not self.worker:
            self.worker = True
            self.tubes.workers += 1
        client = self.client
        assert client is not None
        now_ms = self._node.now_ms()
        if self.reserved and self.deadline_soon(now_ms) and not self._node.is_ready(self.names):
            self.write(b"DEADLINE_SOON\r\n")
            return
        job = self._node.take(client, self.names)
        if job is not None:
            self.give(job)
        elif timeout_ms == 0:
            self.write(b"TIMED_OUT\r\n")
        else:
            self._until_ms = 0 if timeout_ms < 0 else now_ms + timeout_ms
            limit_ms = max(timeout_ms, 0)
            soonest_ms = self.find_soonest()
            if soonest_ms > 0:
                left_ms = max(1, soonest_ms - MARGIN_MS - now_ms)
                if limit_ms == 0 or left_ms < limit_ms:
                    limit_ms = left_ms
            # Only one wait at a time: a copy, for the node keeps the list.
            self._node.wait(client, list(self.names), limit_ms)
            self._waiting = True
            self.tubes.waiting += 1

    def _end_wait(self) -> None:
        if self._waiting:
            self._waiting = False
            self.tubes.waiting -= 1

    # -- what a client that waited gets ------------------------------------------------------

    def status(self, text: bytes) -> None:
        entry, self._putting = self._putting, None
        if entry is not None:
            self.write(b"INSERTED %d\r\n" % entry.number)

    def jobs(self, jobs: list[JobRecord], with_counters: bool) -> None:
        self._end_wait()
        for job in jobs:
            assert isinstance(job, Job)
            self._node.begin_lease(job)
            self.give(job)

    def null_array(self) -> None:
        self._end_wait()
        now_ms = self._node.now_ms()
        if self.deadline_soon(now_ms):
            self.write(b"DEADLINE_SOON\r\n")
        elif self._until_ms == 0 or now_ms < self._until_ms:
            self._again = True  # the lease for which it was woken ended otherwise
        else:
            self.write(b"TIMED_OUT\r\n")

    def error(self, line: bytes) -> None:
        self._end_wait()
        self._putting = None
        code, _, text = line.decode("latin-1").partition(" ")
        self.write(refusal(CommandError(code, text)))

    def closed(self) -> None:
        tubes = self.tubes
        self._end_wait()
        tubes.connected -= 1
        tubes.producers -= 1 if self.producer else 0
        tubes.workers -= 1 if self.worker else 0
        jobs: list[Job] = []
        for entry in list(self.reserved.values()):
            entry.drop_holder()
            if entry.job is not None:
                jobs.append(entry.job)
        self._node.return_all(jobs)
        self._others.closed()
