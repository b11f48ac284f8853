"""Producers and consumers of a run: they act at random, as its workload describes."""

from __future__ import annotations

import json
from base64 import b64decode
from typing import TYPE_CHECKING, Any, Final

import hiredis

from disque_tx.sim.actors.clients import LOST, SimClient, Then
from disque_tx.sim.stage.history import (
    Added,
    JobRequest,
    RecordedDelivery,
    SeenLetter,
    ShownCounters,
)
from disque_tx.sim.stage.workload import DEAD_QUEUE
from disque_tx.sim.stage.workloads import COPY_QUEUE, SCHEDULE_QUEUE

if TYPE_CHECKING:
    from disque_tx.sim.machines.machine import Machine
    from disque_tx.sim.stage.stage import Stage
    from disque_tx.sim.stage.workload import Workload

QUEUES: Final = (b"a", b"b", b"c d")
_TIMEOUT_MS: Final = (200, 1_000, 3_000)
_LARGE: Final = 3_000
#: What GETJOB may take jobs from, by pattern.
_BY_PATTERN: Final = (
    (b"MATCH", b"*"),
    (b"MATCH", b"a*", b"[b-c]*"),
    (b"EXCEPT", b"b*", b"MATCH", b"*"),
    (b"EXCEPT", b"*d", b"MATCH", b"?", b"c*"),
    (b"FROM", b"b", b"MATCH", b"*"),
)
_DELAYS_MS: Final = (0, 300, 2_500, 6_000)


class Actor:
    """Does one thing after the other until the run is over."""

    def __init__(
        self, run: Stage, name: str, workload: Workload, machine: Machine | None = None
    ) -> None:
        self.client = SimClient(run, name, machine, self.password(run))
        self.random = self.client.random
        self.run = run
        self.name = name
        self.workload = workload
        self.rest(200_000)

    @staticmethod
    def password(run: Stage) -> bytes:
        """The password that it authenticates with."""
        return run.password

    def rest(self, mean_us: int) -> None:
        """Do the next thing after a while."""
        pause_us = int(self.random.expovariate(1 / mean_us)) + 1
        self.run.world.at(pause_us, self._wake)

    def _wake(self) -> None:
        if self.run.busy:
            self.act()

    def act(self) -> None:
        """The next thing."""
        raise NotImplementedError


class Producer(Actor):
    """Adds jobs, each with a body of its own."""

    def __init__(
        self, run: Stage, name: str, workload: Workload, machine: Machine | None = None
    ) -> None:
        super().__init__(run, name, workload, machine)
        self._made = 0

    def act(self) -> None:
        self.send(*self.new_job())

    def new_job(self) -> tuple[Added, int]:
        """A job to be added, and how many milliseconds its copies may take."""
        random, workload = self.random, self.workload
        self._made += 1
        size = random.randrange(_LARGE) if random.random() < 0.1 else random.randrange(30)
        body = b"%s-%d-" % (self.name.encode(), self._made) + b"x" * size
        retry_s = random.choice(workload.retry_s)
        ttl_s = random.choice(workload.ttl_s)
        delay_s = random.choice([d for d in workload.delay_s if d < ttl_s])
        copies = min(random.choice(workload.replicate), len(self.run.machines))
        if retry_s == 0:
            copies = 1
        asynchronous = random.random() < workload.asynchronous
        timeout_ms = random.choice(_TIMEOUT_MS)
        added = Added(
            body,
            random.choice(QUEUES[: self.run.queues]),
            b"",
            self.run.world.now_us,
            copies,
            retry_s,
            ttl_s,
            delay_s,
            asynchronous,
        )
        self.run.history.added[body] = added
        return added, timeout_ms

    def send(self, added: Added, timeout_ms: int) -> None:
        """ADDJOB."""
        words = self.words(added, timeout_ms)
        self.client.ask(
            lambda reply: self.answered(added, reply), *words, within_us=timeout_ms * 1000
        )
        added.node = self.client.node

    def words(self, added: Added, timeout_ms: int) -> list[bytes]:
        """The words of ADDJOB."""
        words = [b"ADDJOB", added.queue, added.body, b"%d" % timeout_ms]
        words += [b"REPLICATE", b"%d" % added.replicate]
        words += [b"RETRY", b"%d" % added.retry_s, b"TTL", b"%d" % added.ttl_s]
        if added.delay_s:
            words += [b"DELAY", b"%d" % added.delay_s]
        if added.asynchronous:
            words.append(b"ASYNC")
        return words + self.further_words(added)

    def further_words(self, added: Added) -> list[bytes]:
        """Further options of ADDJOB."""
        return []

    def answered(self, added: Added, reply: Any) -> None:
        """The answer, or ``LOST``."""
        if reply is LOST:
            pass
        elif isinstance(reply, hiredis.ReplyError):
            added.refused = str(reply)
            if self.random.random() < 0.5:
                self.client.leave()
        else:
            added.answered_us = self.client.sent_us
            self.run.accepted(added, self.client.node, reply)
        self.rest(self.run.pace_us)


class Consumer(Actor):
    """Takes jobs, and does with each one of the workload's actions."""

    def act(self) -> None:
        random, workload = self.random, self.workload
        words = [b"GETJOB", b"WITHCOUNTERS"]
        timeout_ms = random.choice(_TIMEOUT_MS)
        if random.random() < workload.nohang:
            words.append(b"NOHANG")
        else:
            words += [b"TIMEOUT", b"%d" % timeout_ms]
        words += [b"COUNT", b"%d" % random.choice(workload.count)]
        # Without patterns nothing is drawn for them, so that other workloads stay as they are.
        if workload.match > 0 and random.random() < workload.match:
            if workload.schedules:
                words += [b"EXCEPT", SCHEDULE_QUEUE]  # others take those, and acknowledge each
            words += random.choice(_BY_PATTERN)
        else:
            words.append(b"FROM")
            words += random.sample(QUEUES[: self.run.queues], random.randint(1, self.run.queues))
        self.client.ask(self._got, *words, within_us=timeout_ms * 1000)

    def _got(self, reply: Any) -> None:
        if reply is LOST or isinstance(reply, hiredis.ReplyError):
            if self.random.random() < 0.5:
                self.client.leave()
            self.rest(self.run.pace_us)
            return
        jobs = record_deliveries(self.run, self.client, reply)
        self._handle(jobs)

    def _handle(self, jobs: list[bytes]) -> None:
        """Do something with the next job, after having worked on it."""
        if not jobs:
            self.rest(self.run.pace_us)
            return
        job_id = jobs.pop()
        action = self.random.choice(self.workload.actions)
        work_us = int(self.random.expovariate(1 / 200_000))
        self.run.world.at(work_us, lambda: self._do(action, job_id, jobs))

    def _do(self, action: str, job_id: bytes, jobs: list[bytes]) -> None:
        if not self.run.busy:
            return
        if action == "ignore":
            self._handle(jobs)
            return
        if action.endswith("-elsewhere"):
            self.client.leave()
        if action == "show":
            self.client.ask(lambda reply: self._shown(job_id, jobs, reply), b"SHOW", job_id)
            return
        delay_ms = self.random.choice(_DELAYS_MS) if action == "nack-later" else -1
        send_job_request(
            self.run,
            self.client,
            _WORDS[action],
            [job_id],
            lambda _: self._done(action, job_id, jobs),
            delay_ms,
        )

    def _done(self, action: str, job_id: bytes, jobs: list[bytes]) -> None:
        if action == "working":
            self.run.world.at(500_000, lambda: self._do("ack", job_id, jobs))
        else:
            self._handle(jobs)

    def _shown(self, job_id: bytes, jobs: list[bytes], reply: Any) -> None:
        if isinstance(reply, list):
            record_counters(self.run, self.client, reply)
        self._do("ack", job_id, jobs)


_WORDS: Final = {
    "ack": b"ACKJOB",
    "ack-elsewhere": b"ACKJOB",
    "fastack": b"FASTACK",
    "fastack-elsewhere": b"FASTACK",
    "deljob": b"DELJOB",
    "nack": b"NACK",
    "nack-later": b"NACK",
    "enqueue": b"ENQUEUE",
    "dequeue": b"DEQUEUE",
    "working": b"WORKING",
}


def send_job_request(
    run: Stage, client: SimClient, word: bytes, ids: list[bytes], then: Then, delay_ms: int = -1
) -> None:
    """Send a request about jobs, and write down for each that it was sent, and what came back.

    ``delay_ms``: the option DELAY of NACK, -1 to leave it out.
    """
    requests = [JobRequest(word, job_id, b"", run.world.now_us) for job_id in ids]
    options: list[bytes] = []
    if delay_ms >= 0:
        options = [b"DELAY", b"%d.%03d" % divmod(delay_ms, 1000), b"REASON", b"it failed"]
        for request in requests:
            request.delay_us = delay_ms * 1000
    run.history.job_requests += requests

    def done(reply: Any) -> None:
        for request in requests:
            request.node = client.node
            if reply is not LOST:
                request.answered_us = client.sent_us
                if isinstance(reply, int) and (len(ids) == 1 or reply == len(ids)):
                    request.reply = reply if len(ids) == 1 else 1
                elif isinstance(reply, hiredis.ReplyError):
                    request.refused = str(reply)
        then(reply)

    client.ask(done, word, *options, *ids)


def record_counters(run: Stage, client: SimClient, reply: list[Any]) -> None:
    """Write down the counters in the answer to a SHOW."""
    row = dict(zip(reply[::2], reply[1::2], strict=True))
    counters = row[b"nacks"], row[b"additional-deliveries"]
    run.history.shown_counters.append(
        ShownCounters(row[b"id"], client.node, client.sent_us, *counters)
    )


def record_deliveries(run: Stage, client: SimClient, reply: Any) -> list[bytes]:
    """Write down the jobs in the answer to GETJOB WITHCOUNTERS, and return their IDs."""
    ids: list[bytes] = []
    answer = len(run.history.delivered)
    for queue, job_id, body, _, nacks, _, deliveries in reply or []:
        ids.append(job_id)
        if queue == DEAD_QUEUE:
            letter = json.loads(body)
            about, body = letter["id"].encode(), b64decode(letter["body"])
            run.history.letters.append(SeenLetter(about, body, job_id))
            continue
        if queue == COPY_QUEUE:
            run.history.copied.append(body)
            continue
        run.history.delivered.append(
            RecordedDelivery(
                body,
                job_id,
                queue,
                client.node,
                client.sent_us,
                run.world.now_us,
                nacks,
                deliveries,
                answer,
            )
        )
    return ids
