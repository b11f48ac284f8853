"""Moves the waiting and scheduled jobs of RQ, in a Redis server, to Disque.

The steps for each job are

1. in one script, at the source: take the ID out of RQ's queue, and note it in a hash of claims;
2. ADDJOB;
3. in one script: delete the job at the source, and the claim.

So workers of RQ may go on meanwhile: a job is theirs or ours. Until it is stored here its data is
at the source. An import that was killed leaves one claim, which the next one finishes; if that one
died between steps 2 and 3, the job is here twice. An import that fails or is stopped gives the job
back to RQ's queue.
"""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final

import redis

from disque_tx.cli.verbs.imports.outcome import ImportOutcome, SourceFailed
from disque_tx.cli.verbs.imports.rqjobs import CannotMove, RQCall, call_of
from disque_tx.client.blocking import Disque
from disque_tx.integrations.adding import JobTerms
from disque_tx.text.counts import counted

_READ_AT_ONCE: Final = 100
_TIMEOUT_S: Final = 20.0
#: How long the server may take to notice that an import was killed.
_NOTICED_S: Final = 5.0
_NAME: Final = "disque-import-"
#: Registries of RQ whose jobs stay → why.
_STAYING: Final = {
    "wip": "running: RQ's workers finish them",
    "deferred": "they depend on other jobs",
    "ready": "they wait for a rate limit",
    "finished": "done",
    "failed": "failed; requeue them with rq to move them",
    "canceled": "cancelled",
}
#: queue or registry, claims, dependents of the job; its ID, note → 1 if it is claimed now
_CLAIM: Final = """\
if redis.call('EXISTS', KEYS[3]) ~= 0 then return 0 end
local taken
if redis.call('TYPE', KEYS[1]).ok == 'list' then taken = redis.call('LREM', KEYS[1], 1, ARGV[1])
else taken = redis.call('ZREM', KEYS[1], ARGV[1]) end
if taken == 1 then redis.call('HSET', KEYS[2], ARGV[1], ARGV[2]) end
return taken
"""
#: job, claims; ID
_FINISH: Final = """\
redis.call('DEL', KEYS[1])
return redis.call('HDEL', KEYS[2], ARGV[1])
"""
#: queue or registry, claims; ID, time it is due, or nothing
_GIVE_BACK: Final = """\
if redis.call('HDEL', KEYS[2], ARGV[1]) == 0 then return 0 end
if ARGV[2] == '' then return redis.call('LPUSH', KEYS[1], ARGV[1]) end
return redis.call('ZADD', KEYS[1], ARGV[2], ARGV[1])
"""


@contextmanager
def redis_errors() -> Iterator[None]:
    """Errors of Redis as errors for people."""
    try:
        yield
    except redis.RedisError as error:
        raise SourceFailed(f"Redis: {error}") from None


class RQSource:
    """The jobs of RQ in one Redis server. ``key_prefix``: RQ's, ``rq`` by default."""

    def __init__(self, url: str, password: str | None, key_prefix: str = "rq") -> None:
        self._session = secrets.token_hex(8)
        self._prefix = key_prefix
        words: dict[str, Any] = {"password": password} if password else {}
        try:
            self._redis: Any = redis.Redis.from_url(
                url,
                single_connection_client=True,
                client_name=_NAME + self._session,
                socket_timeout=_TIMEOUT_S,
                socket_connect_timeout=_TIMEOUT_S,
                **words,
            )
        except ValueError as error:
            raise SourceFailed(f"{error}") from None
        except redis.RedisError as error:
            raise SourceFailed(f"Redis: {error}") from None
        self._claim = self._redis.register_script(_CLAIM)
        self._finish = self._redis.register_script(_FINISH)
        self._give_back = self._redis.register_script(_GIVE_BACK)

    def close(self) -> None:
        """Close the connection."""
        self._redis.close()

    def queues(self) -> list[str]:
        """The names of all queues."""
        start = self.key("queue", "")
        names = [_text(key) for key in self._redis.smembers(f"{self._prefix}:queues")]
        return sorted(name.removeprefix(start) for name in names)

    def key(self, *parts: str) -> str:
        """A key of RQ."""
        return ":".join((self._prefix, *parts))

    def _at(self, *parts: str) -> bytes:
        """The bytes of a key: names of queues and jobs need not be UTF-8."""
        return _bytes(self.key(*parts))

    @property
    def claims_key(self) -> str:
        """Where jobs are noted while they are moved."""
        return self.key("disque-import")

    # -- one import at a time ----------------------------------------------------------------

    def wait_until_alone(self, sleep: Callable[[float], object] = time.sleep) -> None:
        """:raises SourceFailed: another import reads from this server."""
        for _ in range(int(_NOTICED_S / 0.1)):
            others = [
                client["addr"]
                for client in self._redis.client_list()
                if client.get("name", "").startswith(_NAME)
                and client.get("name", "") != _NAME + self._session
            ]
            if not others:
                return
            sleep(0.1)
        raise SourceFailed(f"Another import reads from this Redis server, from {others[0]}.")

    def claimed(self) -> dict[str, dict[str, Any]]:
        """The claims that an earlier import left: ID → note."""
        found: dict[str, dict[str, Any]] = {}
        for job_id, note in self._redis.hgetall(self.claims_key).items():
            try:
                value = json.loads(note)
                found[_text(job_id)] = {"key": str(value["key"]), "queue": str(value["queue"])}
                found[_text(job_id)]["at_s"] = None if value["at_s"] is None else value["at_s"] + 0
            except (ValueError, TypeError, KeyError):
                raise SourceFailed(
                    f"The key {self.claims_key} in Redis holds something else than the claims of an"
                    " import."
                ) from None
        return found

    # -- jobs --------------------------------------------------------------------------------

    def counts(self, queue: str) -> int:
        """How many jobs wait or are scheduled."""
        waiting: int = self._redis.llen(self._at("queue", queue))
        scheduled: int = self._redis.zcard(self._at("scheduled", queue))
        return waiting + scheduled

    def staying(self, queue: str) -> Iterator[tuple[int, str]]:
        """How many jobs of the queue stay, and why."""
        taken = self._redis.llen(self._at("queue", queue, "intermediate"))
        if taken:
            yield taken, "being fetched by workers of RQ"
        for registry, reason in _STAYING.items():
            count = self._redis.zcard(self._at(registry, queue))
            if count:
                yield count, reason

    def page(self, key: str, start: int) -> list[tuple[str, float | None]]:
        """IDs from this position on, each with the time it is due."""
        end = start + _READ_AT_ONCE - 1
        if ":scheduled:" in key:
            found = self._redis.zrange(_bytes(key), start, end, withscores=True)
            return [(_text(job_id), float(at_s)) for job_id, at_s in found]
        return [(_text(job_id), None) for job_id in self._redis.lrange(_bytes(key), start, end)]

    def call(self, job_id: str, queue: str) -> RQCall:
        """:raises CannotMove: the job has to stay."""
        with self._redis.pipeline(transaction=True) as pipe:
            pipe.hgetall(self._at("job", job_id))
            pipe.pttl(self._at("job", job_id))
            pipe.exists(self._at("job", job_id, "dependents"))
            fields, ttl_ms, has_dependents = pipe.execute()
        if has_dependents:
            raise CannotMove("other jobs depend on it")
        return call_of(job_id, queue, fields, ttl_ms)

    def claim(self, job_id: str, note: dict[str, Any]) -> bool:
        """Take it from RQ's workers; whether it was still there."""
        queue = _bytes(note["key"])
        keys: list[bytes | str] = [queue, self.claims_key, self._at("job", job_id, "dependents")]
        return bool(self._claim(keys=keys, args=[_bytes(job_id), json.dumps(note)]))

    def finish(self, job_id: str) -> None:
        """Delete a job from Redis that is stored in Disque."""
        self._finish(keys=[self._at("job", job_id), self.claims_key], args=[_bytes(job_id)])

    def give_back(self, job_id: str, note: dict[str, Any]) -> None:
        """Put a job that is not stored in Disque back to where it was. If Redis does not answer,
        the claim stays for the next import."""
        due = "" if note["at_s"] is None else repr(note["at_s"])
        with suppress(redis.RedisError):
            keys: list[bytes | str] = [_bytes(note["key"]), self.claims_key]
            self._give_back(keys=keys, args=[_bytes(job_id), due])


class RQImport:
    """Moves jobs. ``to_queue``: for all of them, instead of a queue of the same name."""

    def __init__(
        self,
        source: RQSource,
        client: Disque,
        terms: JobTerms,
        outcome: ImportOutcome,
        to_queue: str | None = None,
    ) -> None:
        self._source = source
        self._client = client
        self._terms = terms
        self._outcome = outcome
        self._to_queue = to_queue

    def run(self, queues: list[str]) -> None:
        """Move what waits in these queues.

        :raises SourceFailed, ClientError: start the import again.
        """
        with redis_errors():
            if not self._outcome.dry_run:
                self._source.wait_until_alone()
                self._resume()
            for queue in queues:
                self._move_all(queue, self._source.key("queue", queue))
                self._move_all(queue, self._source.key("scheduled", queue))
                for count, reason in self._source.staying(queue):
                    self._outcome.leave(queue, counted(count, "job"), reason, count)

    def _resume(self) -> None:
        for job_id, note in self._source.claimed().items():
            try:
                call = self._source.call(job_id, note["queue"])
            except CannotMove:
                self._source.give_back(job_id, note)  # and it is listed with the reason
                continue
            self._store(job_id, note, call)
            self._outcome.add(again=True)

    def _move_all(self, queue: str, key: str) -> None:
        """Until a look from the beginning finds nothing to move: workers and producers of RQ shift
        the positions meanwhile."""
        left: set[str] = set()
        while self._pass(queue, key, left) and not self._outcome.dry_run:
            pass

    def _pass(self, queue: str, key: str, left: set[str]) -> int:
        moved = start = 0
        while page := self._source.page(key, start):
            for job_id, at_s in page:
                start += 1
                if job_id in left:
                    continue
                try:
                    call = self._source.call(job_id, queue)
                except CannotMove as error:
                    left.add(job_id)
                    self._outcome.leave(queue, job_id, str(error))
                    continue
                if self._outcome.dry_run:
                    self._outcome.add()
                elif self._move(job_id, {"key": key, "queue": queue, "at_s": at_s}, call):
                    start -= 1
                    moved += 1
        return moved

    def _move(self, job_id: str, note: dict[str, Any], call: RQCall) -> bool:
        if not self._source.claim(job_id, note):
            return False
        self._store(job_id, note, call)
        self._outcome.add()
        return True

    def _store(self, job_id: str, note: dict[str, Any], call: RQCall) -> None:
        delay_s = 0.0 if note["at_s"] is None else note["at_s"] - time.time()
        options = self._terms.options(delay_s, call.ttl_s).retried_if_safe()
        try:
            self._client.add_job_with(self._to_queue or note["queue"], call.body, options)
        except BaseException:
            self._source.give_back(job_id, note)
            raise
        self._source.finish(job_id)


def _text(name: bytes) -> str:
    return name.decode(errors="surrogateescape")


def _bytes(name: str) -> bytes:
    return name.encode(errors="surrogateescape")
