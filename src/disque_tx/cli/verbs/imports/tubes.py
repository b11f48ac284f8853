"""Moves the ready, delayed and buried jobs of beanstalkd to Disque.

A ready job is reserved, added here, and then deleted there. When this is killed in between,
beanstalkd itself makes the job ready again, so it may be here twice. Delayed and buried jobs cannot
be kept from others without making them ready: they are looked at, added here, and then deleted
there; if one cannot be deleted because a worker has got it meanwhile, it is taken back here.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Final

import attrs

from disque_tx.cli.verbs.imports.beanstalk import Beanstalk, FoundTubeJob
from disque_tx.cli.verbs.imports.outcome import ImportOutcome
from disque_tx.client.blocking import Disque
from disque_tx.integrations.adding import JobTerms
from disque_tx.messages.limits import SECONDS_MAX
from disque_tx.text.counts import counted
from disque_tx.worker.settling.deadletters import Letter

#: beanstalkd counts jobs below this priority as urgent.
URGENT: Final = 1024
_DEAD_TTL_S: Final = 30 * 86_400


class TubeImport:
    """Moves jobs. ``to_queue``: for all of them, instead of a queue with the tube's name.
    ``urgent_queue``: for those whose priority is below :data:`URGENT`. The TTR of a job is its
    RETRY; ``terms`` have the rest."""

    def __init__(
        self,
        source: Beanstalk,
        client: Disque,
        terms: JobTerms,
        outcome: ImportOutcome,
        to_queue: str | None = None,
        urgent_queue: str | None = None,
    ) -> None:
        self._source = source
        self._client = client
        self._terms = terms
        self._outcome = outcome
        self._to_queue = to_queue
        self._urgent_queue = urgent_queue

    def run(self, tubes: list[str]) -> None:
        """Move what is in these tubes.

        :raises SourceFailed, ClientError: start the import again.
        """
        for tube in tubes:
            if self._outcome.dry_run:
                for _ in range(movable(self._source, tube)):
                    self._outcome.add()
            else:
                self._source.use(tube)
                self._move_ready(tube)
                self._move_others(tube, "delayed", self._add_delayed)
                self._move_others(tube, "buried", self._add_buried)
            self._leave(tube)

    def _leave(self, tube: str) -> None:
        """What stays."""
        stats = self._source.tube_stats(tube) or {}
        reserved = _whole(stats, "current-jobs-reserved")
        if reserved:
            reason = "reserved: workers have them; import again when they are done"
            self._outcome.leave(tube, counted(reserved, "job"), reason, reserved)
        ready = _whole(stats, "current-jobs-ready")
        pause_s = _whole(stats, "pause-time-left")
        if ready and pause_s and not self._outcome.dry_run:
            reason = f"the tube is paused for {pause_s} s"
            self._outcome.leave(tube, counted(ready, "job"), reason, ready)

    def _move_ready(self, tube: str) -> None:
        while (found := self._source.reserve()) is not None:
            stats = self._source.job_stats(found.id) or {}
            try:
                self._add_plain(tube, found, stats, 0)
            except BaseException:
                self._source.release(found.id, _whole(stats, "pri"))
                raise
            self._source.delete(found.id)
            self._outcome.add()

    def _move_others(
        self, tube: str, state: str, add: Callable[[str, FoundTubeJob, Mapping[str, str]], str]
    ) -> None:
        while (found := self._source.peek(state)) is not None:
            stats = self._source.job_stats(found.id)
            if stats is None or stats.get("state") != state:
                continue  # somebody else has it by now
            job_id = add(tube, found, stats)
            if self._source.delete(found.id):
                self._outcome.add()
            else:
                self._client.ack_jobs(job_id)

    def _add_delayed(self, tube: str, found: FoundTubeJob, stats: Mapping[str, str]) -> str:
        return self._add_plain(tube, found, stats, _whole(stats, "time-left"))

    def _add_plain(
        self, tube: str, found: FoundTubeJob, stats: Mapping[str, str], delay_s: int
    ) -> str:
        queue = self._to_queue or tube
        if self._urgent_queue is not None and _whole(stats, "pri") < URGENT:
            queue = self._urgent_queue
        retry_s = max(1, min(SECONDS_MAX, _whole(stats, "ttr")))
        options = attrs.evolve(self._terms, retry_s=retry_s).options(delay_s).retried_if_safe()
        return str(self._client.add_job_with(queue, found.body, options))

    def _add_buried(self, tube: str, found: FoundTubeJob, stats: Mapping[str, str]) -> str:
        """Buried jobs wait for people, as dead letters do."""
        queue = self._to_queue or tube
        letter = Letter(
            queue=queue,
            id=f"beanstalkd:{tube}:{found.id}",
            body=found.body,
            reason="It was buried in beanstalkd.",
            traceback="",
            worker="disque import",
            nacks=_whole(stats, "releases"),
            additional_deliveries=_whole(stats, "timeouts"),
            failed_at_s=time.time(),
            retry_s=max(1, _whole(stats, "ttr")),
            ttl_s=self._terms.ttl_s,
            replicate=self._terms.replicate,
        )
        options = attrs.evolve(self._terms, ttl_s=_DEAD_TTL_S).options().retried_if_safe()
        return str(self._client.add_job_with(f"dead:{queue}", letter.encoded(), options))


def movable(source: Beanstalk, tube: str) -> int:
    """How many jobs of a tube can be moved now."""
    stats = source.tube_stats(tube) or {}
    return sum(_whole(stats, f"current-jobs-{state}") for state in ("ready", "delayed", "buried"))


def _whole(stats: Mapping[str, str], name: str) -> int:
    """A figure; 0 if the server does not give it."""
    text = stats.get(name, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 20 else 0
