"""The operator of a run, who pauses queues, lets nodes leave, moves jobs by hand; and a stranger,
who has no password and tries everything."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import hiredis

from disque_tx.sim.actors.actors import QUEUES, Actor, record_counters, send_job_request
from disque_tx.sim.actors.clients import LOST, SimClient, Then
from disque_tx.sim.stage.history import RecordedPause

if TYPE_CHECKING:
    from disque_tx.sim.stage.stage import Stage

_PAUSE_FLAGS: Final = {b"none": 0, b"in": 1, b"out": 2, b"all": 3}
_PEEKED: Final = 5
_REST_US: Final = 3_000_000
#: How long a QMOVE may take.
_MOVE_US: Final = 12_000_000


class Operator(Actor):
    """Does what the workload asks for, or else sends commands that only read."""

    def act(self) -> None:
        random = self.random
        if self.workload.leaves and random.random() < 0.7:
            answer = random.choice((b"yes", b"no", b"no"))
            self.client.ask(self._done, b"CLUSTER", b"LEAVING", answer)
        elif self.workload.pauses:
            flags = random.choice(sorted(_PAUSE_FLAGS))
            everywhere = random.random() < 0.5
            queue = random.choice(QUEUES[: self.run.queues])
            pause(self.run, self.client, queue, flags, everywhere, self._done)
        elif self.workload.moves:
            self._move()
        elif self.workload.by_hand:
            queue = random.choice(QUEUES[: self.run.queues])
            self.client.ask(
                self._peeked, b"QPEEK", queue, b"%d" % random.choice((_PEEKED, -_PEEKED))
            )
        else:
            words = random.choice(((b"INFO",), (b"HELLO",), (b"CLUSTER", b"NODES")))
            self.client.ask(self._done, *words)

    def _move(self) -> None:
        """Move some jobs of a queue into another one."""
        source, target = self.random.sample(QUEUES, 2)
        words = [b"QMOVE", source, target]
        if self.random.random() < 0.5:
            words += [b"COUNT", b"%d" % self.random.randint(1, 5)]
        self.client.ask(self._done, *words, within_us=_MOVE_US)

    def _done(self, reply: Any) -> None:
        self.client.leave()
        self.rest(_REST_US // 3 if self.workload.pauses or self.workload.moves else _REST_US)

    def _peeked(self, reply: Any) -> None:
        """Take some of these jobs out of the queue, put them back, or look at one."""
        ids = [row[1] for row in reply] if isinstance(reply, list) else []
        if not ids:
            self.rest(_REST_US // 10)
            return
        word = self.random.choice((b"DEQUEUE", b"DEQUEUE", b"SHOW"))
        if word == b"SHOW":
            self.client.ask(self._looked, word, ids[0])
        else:
            send_job_request(self.run, self.client, word, ids, lambda _: self._taken(ids))

    def _looked(self, reply: Any) -> None:
        if isinstance(reply, list):
            record_counters(self.run, self.client, reply)
        self.rest(_REST_US // 10)

    def _taken(self, ids: list[bytes]) -> None:
        """Some go back at once, the others by themselves after RETRY."""
        some = ids[: self.random.randint(0, len(ids))]
        if some and self.run.busy:
            send_job_request(self.run, self.client, b"ENQUEUE", some, self._done)
        else:
            self._done(LOST)


def pause(
    run: Stage, client: SimClient, queue: bytes, flags: bytes, everywhere: bool, then: Then
) -> None:
    """Send a PAUSE, and write it down."""
    paused = RecordedPause(queue, b"", _PAUSE_FLAGS[flags], everywhere, run.world.now_us)
    run.history.pauses.append(paused)

    def done(reply: Any) -> None:
        paused.node = client.node
        if reply is not LOST:
            paused.answered_us = client.sent_us
        then(reply)

    words = [b"PAUSE", queue, flags, *((b"bcast",) if everywhere else ())]
    client.ask(done, *words)


class Stranger(Actor):
    """A client without a password, or with a wrong one."""

    @staticmethod
    def password(run: Stage) -> bytes:
        return b""

    def act(self) -> None:
        queue = self.random.choice(QUEUES)
        words: tuple[bytes, ...] = self.random.choice(
            (
                (b"AUTH", self.run.password[:-1]),
                (b"ADDJOB", queue, b"from a stranger", b"0"),
                (b"GETJOB", b"NOHANG", b"FROM", queue),
                (b"QPEEK", queue, b"10"),
                (b"PAUSE", queue, b"all", b"bcast"),
                (b"CLUSTER", b"LEAVING", b"yes"),
                (b"INFO",),
            )
        )
        self.client.ask(lambda reply: self._answered(words, reply), *words)

    def _answered(self, words: tuple[bytes, ...], reply: Any) -> None:
        if reply is not LOST and not isinstance(reply, hiredis.ReplyError):
            self.run.history.admitted.append(f"{b' '.join(words).decode()}: {reply!r}")
        if self.random.random() < 0.5:
            self.client.leave()
        self.rest(_REST_US // 3)
