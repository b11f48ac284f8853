"""Results are sent as jobs, in a queue of its own for each job.

The worker adds the result and then acknowledges the job; so a job that is done twice has two
results, of which the first counts. Results that nobody reads expire after their TTL.
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from typing import Any, Final

from twisted.internet.defer import Deferred

from disque_tx.client.blocking import Disque
from disque_tx.worker.base.errors import JobFailed, NoResult, ResultTimeout, WorkerError

REPLY_PREFIX: Final = "result:"
REPLY_CHARACTERS_MAX: Final = 100
RESULT_RETRY_S: Final = 30


class BrokenResult(WorkerError):
    """A job in a queue for results is not a result."""


def encoded_result(payload: bytes) -> bytes:
    """The body for a result; ``payload``: the value, encoded by the queue's serializer."""
    return json.dumps({"ok": True, "value": b64encode(payload).decode()}).encode()


def encoded_failure(reason: str) -> bytes:
    """The body that reports a failure instead of a result."""
    return json.dumps({"ok": False, "reason": reason}).encode()


def decoded(body: bytes, serializer: Any) -> object:
    """The value of a result.

    :raises JobFailed: the job has failed for good.
    :raises BrokenResult: these are not the bytes of a result.
    """
    try:
        values = json.loads(body)
        if values["ok"] is not True:
            reason = str(values["reason"])
            raise JobFailed(reason)
        return serializer.loads(b64decode(values["value"], validate=True))
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise BrokenResult(f"This is not a result: {error}.") from None


class _Handle:
    """A job that was added. ``id``: its ID."""

    def __init__(self, job_id: str, reply: str | None, serializer: Any) -> None:
        self.id = job_id
        self._reply = reply
        self._serializer = serializer
        self._body: bytes | None = None

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.id}>"

    def _queue(self) -> str:
        if self._reply is None:
            raise NoResult(
                f"Job {self.id} was added without asking for a result: use @queue.job(result=True)."
            )
        return self._reply

    def _value(self, body: bytes | None, timeout: float | None) -> object:
        if body is None:
            raise ResultTimeout(f"Job {self.id} had no result within {timeout} s.")
        self._body = body
        return decoded(body, self._serializer)


class Pending(_Handle):
    """A job that was added by a blocking client."""

    def __init__(self, client: Disque, job_id: str, reply: str | None, serializer: Any) -> None:
        super().__init__(job_id, reply, serializer)
        self._client = client

    def result(self, timeout: float | None = None) -> Any:
        """Wait for the result, ``timeout`` seconds at most (``None``: forever).

        :raises ResultTimeout: none came.
        :raises JobFailed: the job has become a dead letter.
        :raises NoResult: none was asked for.
        """
        queue = self._queue()
        if self._body is None:
            job = self._client.dequeue(queue, timeout)
            if job is not None:
                job.ack()
            return self._value(None if job is None else job.data, timeout)
        return self._value(self._body, timeout)


class AsyncPending(_Handle):
    """A job that was added by a Twisted client."""

    def __init__(self, client: Any, job_id: str, reply: str | None, serializer: Any) -> None:
        super().__init__(job_id, reply, serializer)
        self._client = client

    def result(self, timeout: float | None = None) -> Deferred[Any]:
        """Like :meth:`Pending.result`, with a Deferred. May be cancelled and called again."""
        return Deferred.fromCoroutine(self._result(timeout))

    async def _result(self, timeout: float | None) -> object:
        queue = self._queue()
        if self._body is None:
            jobs = await self._client.take(queue, timeout_s=timeout, no_hang=timeout == 0)
            body = jobs[0].data if jobs else None
            if jobs:
                await self._client.ack_taken(jobs)
            return self._value(body, timeout)
        return self._value(self._body, timeout)
