"""Producers that add jobs with keys."""

from __future__ import annotations

from typing import Any, Final

import hiredis

from disque_tx.sim.actors.actors import Producer
from disque_tx.sim.actors.bursts import BurstProducer
from disque_tx.sim.actors.clients import LOST
from disque_tx.sim.stage.history import Added, NamedJob

_FOR_S: Final = b"7200"
_TIMEOUT_MS: Final = 3_000
_ASK_AGAIN: Final = 0.2


class KeyProducer(Producer):
    """Adds each job until there is an answer with its ID, at one node or another, and some once
    more after that. The key is the body, and is kept longer than any run lasts."""

    def further_words(self, added: Added) -> list[bytes]:
        return [b"UNIQUE", added.body, b"FOR", _FOR_S, b"WITHNEW"]

    def answered(self, added: Added, reply: Any) -> None:
        run = self.run
        if reply is LOST or isinstance(reply, hiredis.ReplyError):
            if reply is LOST:
                run.world.counters["keys.lost"] += 1
            if self.random.random() < 0.5:
                self.client.leave()
            if run.busy:
                run.world.at(run.pace_us, lambda: self._again(added))
            return
        job_id, fresh = reply
        run.history.keys.setdefault(added.body, set()).add(job_id)
        run.world.counters["keys.new" if fresh else "keys.known"] += 1
        if added.accepted_us < 0:
            added.answered_us = self.client.sent_us
            added.known = not fresh
            run.accepted(added, self.client.node, job_id)
        if self.random.random() < _ASK_AGAIN:
            self.client.leave()
            run.world.at(run.pace_us, lambda: self._again(added))
        else:
            self.rest(run.pace_us)

    def _again(self, added: Added) -> None:
        if self.run.busy:
            self.send(added, _TIMEOUT_MS)


class KeyUser(Producer):
    """Adds jobs with keys that were used before, whose jobs may be done by now."""

    def further_words(self, added: Added) -> list[bytes]:
        return _reused_key(self, added)

    def answered(self, added: Added, reply: Any) -> None:
        reply = _new_job(self, added, reply)
        if reply is None:
            self.rest(self.run.pace_us)
        else:
            super().answered(added, reply)


class KeyBurstProducer(BurstProducer):
    """Adds such jobs in bursts, often several with one key."""

    def further_words(self, added: Added) -> list[bytes]:
        return _reused_key(self, added)

    def answered(self, added: Added, reply: Any) -> None:
        super().answered(added, _new_job(self, added, reply))


def _reused_key(producer: Producer, added: Added) -> list[bytes]:
    """The words of ADDJOB for a key that was used before."""
    added.key = b"key-%d" % producer.random.randrange(producer.workload.key_pool)
    return [b"UNIQUE", added.key, b"WITHNEW"]


def _new_job(producer: Producer, added: Added, reply: Any) -> Any:
    """The ID of the new job, ``None`` if another one has its key, or what else was answered."""
    if not isinstance(reply, list):
        return reply
    run, node = producer.run, producer.client.node
    job_id, fresh = reply
    run.world.counters["keys.new" if fresh else "keys.known"] += 1
    if fresh:
        return job_id
    added.refused = "its key is taken"
    run.history.named.append(NamedJob(added.key, job_id, node, added.asked_us))
    return None
