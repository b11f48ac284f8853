"""The blocking client: for scripts, notebooks, and workers without a reactor."""

from __future__ import annotations

from collections.abc import Iterable
from types import TracebackType

from disque_tx.client.addresses import seeds
from disque_tx.client.blocking.channels import Channels
from disque_tx.client.blocking.queue import Queue, TakenJob
from disque_tx.client.blocking.session import Session, Surroundings
from disque_tx.client.encryption import TLS, chosen
from disque_tx.client.options import Options
from disque_tx.client.requests import Name
from disque_tx.client.search import whole_ms


class Disque(Channels):
    """A client of a Disque cluster, this package's or the original's.

    Connects when the first request is made, to any of the nodes, and moves to another one when
    that is lost, leaves, or is silent for too long. May be shared by threads.

    ``addresses``: ``host:port``, ``unix:/path``, a list of such, or
    ``disque://[:password@]host:port[,…]``.
    ``timeout_s``: for connecting, and for a reply beyond what the request itself may wait.
    ``patience_s``: how long a request looks for a node that serves. ``discover``: use the nodes
    that HELLO names too; by default unless there is TLS, whose ports HELLO does not name.
    ``follow``: fetch from the node that makes most of the jobs. ``protocol``: of RESP, 2 or 3.
    ``surroundings``: clock, rest and chance, for tests.

    :raises BadAddress: for something that is no address.
    """

    def __init__(
        self,
        addresses: str | Iterable[str] = "127.0.0.1:7711",
        password: str | None = None,
        tls: bool | TLS = False,
        timeout_s: float = 5.0,
        patience_s: float = 20.0,
        discover: bool | None = None,
        follow: bool = True,
        protocol: int = 2,
        surroundings: Surroundings | None = None,
    ) -> None:
        given = seeds(addresses)
        encryption = chosen(tls)
        learning = encryption is None if discover is None else discover
        options = Options(password or given.password, encryption, timeout_s, protocol)
        session = Session(given, options, learning, patience_s, surroundings)
        super().__init__(session, follow)
        self._given = given

    def __repr__(self) -> str:
        return f"<Disque {','.join(map(str, self._given.addresses))}>"

    def __enter__(self) -> Disque:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections. A later request opens new ones."""
        self._session.close()

    # -- short forms -------------------------------------------------------------------------

    def enqueue(
        self,
        queue: Name,
        data: Name,
        delay: int | None = None,
        retry: int | None = None,
        ttl: int | None = None,
    ) -> str:
        """Add a job; returns its ID. Times are seconds, as in :meth:`add_job`, which see."""
        return self.add_job(queue, data, delay_s=delay, retry_s=retry, ttl_s=ttl)

    def dequeue(self, queue: Name, timeout: float | None = None) -> TakenJob | None:
        """Take a job, waiting for it ``timeout`` seconds (``None``: for ever, 0: not at all).

        ``None`` when there was none. Jobs that are done must be acknowledged.
        """
        node, jobs = self._fetch((queue,), 1, whole_ms(timeout), no_hang=timeout == 0)
        return TakenJob(self._session, node, jobs[0]) if jobs else None

    def queue(self, name: Name, timeout: float | None = None) -> Queue:
        """The jobs of a queue, to iterate over; ends when none came for ``timeout`` seconds."""
        return Queue(name, lambda: self.dequeue(name, timeout))
