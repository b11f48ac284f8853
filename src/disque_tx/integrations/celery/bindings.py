"""Which queues are bound to which exchanges, known to all processes: kept as jobs.

A binding is a job in a queue of its exchange's own, which nobody fetches from; its body says what
is bound. It is copied to several nodes as any job is, and queued, so seen by QPEEK, at one of them:
so that queue is looked at on every node. Bindings of queues that end with their process (of remote
control, and of monitors) have a short TTL and are made again while the process lives.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, Final, TypeAlias

from disque_tx.client import ClientError
from disque_tx.client.blocking import Disque
from disque_tx.client.options import AddOptions
from disque_tx.client.requests import encoding as requests
from disque_tx.integrations.cluster import ask_all

_LOG: Final = logging.getLogger(__name__)
#: Routing key, pattern, queue.
Binding: TypeAlias = tuple[str, str | None, str]
_QUEUE: Final = "kombu:bindings:"
_MOST: Final = 10_000
#: How long a durable binding may be missing after its node has died.
_RETRY_S: Final = 10
_TEN_YEARS_S: Final = 10 * 365 * 86_400
#: Of bindings that end with their process, and how often they are made again.
_SHORT_TTL_S: Final = 60
_RENEWAL_S: Final = 20.0
#: How old what is known of other processes' bindings may be.
REFRESH_S: Final = 5.0


class Bindings:
    """The bindings of all exchanges. ``prefix``: of the queues that hold them."""

    def __init__(
        self,
        client: Disque,
        prefix: str,
        replicate: int | None,
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._client = client
        self._prefix = prefix
        self._replicate = replicate
        self._now_s = now_s
        self._lock = threading.Lock()
        self._known: dict[str, tuple[float, list[Binding]]] = {}
        self._passing: set[tuple[str, Binding]] = set()
        self._closed = threading.Event()
        self._thread: threading.Thread | None = None

    def add(self, exchange: str, binding: Binding, durable: bool) -> None:
        """Bind a queue: for good, or unless ``durable`` as long as this process lives."""
        if durable:
            if binding not in self.table(exchange, fresh=True):
                self._make(exchange, binding, _RETRY_S, _TEN_YEARS_S)
        else:
            self._make(exchange, binding, 0, _SHORT_TTL_S)
            with self._lock:
                self._passing.add((exchange, binding))
                if self._thread is None:
                    self._thread = threading.Thread(
                        target=self._renew, name="disque-bindings", daemon=True
                    )
                    self._thread.start()
        self._known.pop(exchange, None)

    def remove(self, exchange: str, queue: str, routing_key: str | None = None) -> None:
        """Unbind a queue; ``routing_key``: only where it is bound with this one."""
        with self._lock:
            gone = {
                (bound, binding)
                for bound, binding in self._passing
                if bound == exchange and matches(binding, queue, routing_key)
            }
            self._passing -= gone
        for job in self._jobs(exchange):
            binding = _decoded(job.body)
            if binding is not None and matches(binding, queue, routing_key):
                self._client.ack_jobs(job.id)
        self._known.pop(exchange, None)

    def table(self, exchange: str, fresh: bool = False) -> list[Binding]:
        """All bindings of an exchange, as known a few seconds ago; ``fresh``: now."""
        known = self._known.get(exchange)
        if known is not None and not fresh and self._now_s() - known[0] < REFRESH_S:
            return known[1]
        found = {_decoded(job.body) for job in self._jobs(exchange)}
        table = sorted((item for item in found if item is not None), key=str)
        self._known[exchange] = (self._now_s(), table)
        return table

    def close(self) -> None:
        """Make no binding again; those that end with the process expire."""
        self._closed.set()

    def _make(self, exchange: str, binding: Binding, retry_s: int, ttl_s: int) -> None:
        options = AddOptions(
            replicate=1 if retry_s == 0 else self._replicate, retry_s=retry_s, ttl_s=ttl_s
        )
        self._client.add_job_with(self._queue(exchange), json.dumps(binding), options)

    def _queue(self, exchange: str) -> str:
        return f"{self._prefix}{_QUEUE}{exchange}"

    def _jobs(self, exchange: str) -> Iterator[Any]:
        """The jobs of all nodes that can be asked."""
        peek = requests.queue_peek(self._queue(exchange), _MOST)
        for answer in ask_all(self._client, peek):
            yield from answer

    def _renew(self) -> None:
        while not self._closed.wait(_RENEWAL_S):
            with self._lock:
                passing = list(self._passing)
            for exchange, binding in passing:
                try:
                    self._make(exchange, binding, 0, _SHORT_TTL_S)
                except ClientError as error:
                    _LOG.info("The binding of queue %r is not renewed: %s", binding[2], error)


def matches(binding: Binding, queue: str, routing_key: str | None) -> bool:
    """Whether this is a binding of a queue; ``routing_key``: and with this one."""
    return binding[2] == queue and routing_key in (None, binding[0])


def _decoded(body: bytes) -> Binding | None:
    """The binding in this body; ``None`` for anything else that somebody put there."""
    try:
        routing_key, pattern, queue = json.loads(body)
    except (ValueError, TypeError, RecursionError):
        return None
    right = isinstance(routing_key, str) and isinstance(queue, str)
    if not right or not isinstance(pattern, str | None):
        return None
    return routing_key, pattern, queue
