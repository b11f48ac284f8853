"""The blocking client, and the jobs that it delivers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from types import TracebackType

from disque_tx.client.blocking.servers import Servers
from disque_tx.client.blocking.session import BlockingSession, ClientEnvironment
from disque_tx.client.options import TLS, Target
from disque_tx.client.requests.encoding import Name
from disque_tx.client.steps.commands import Commands
from disque_tx.client.steps.delivered import Delivered
from disque_tx.client.steps.fetching import Batches
from disque_tx.client.steps.methods import ImmediateMethods


class TakenJob(ImmediateMethods, Delivered):
    """A job that the blocking client delivered; see :class:`Delivered`."""

    __slots__ = ()


class Disque(ImmediateMethods, Batches[TakenJob], Commands[TakenJob]):
    """A client of a Disque cluster, this package's or the original's.

    Connects when the first request is made, to any of the nodes, and moves to another one when
    that is lost, leaves, or does not answer in time. May be shared by threads.

    ``addresses``: ``host:port``, ``unix:/path``, a list of such, or
    ``disque://[:password@]host:port[,…]``; or the name of a cluster, whose addresses are looked up
    when a node is chosen: ``disque+dns://[:password@]name:port``, ``disque+srv://[:password@]name``.
    ``timeout_s``: for connecting, and for a reply, on top of the time the request itself may wait.
    ``patience_s``: how long a request looks for a node that answers. ``discover``: use the nodes
    listed by HELLO too; the default is yes, but no with TLS, whose ports HELLO does not list.
    ``follow``: fetch from the node that creates most of the jobs. ``protocol``: version of RESP, 2
    or 3. ``environment``: clock, sleep and random numbers, for tests.

    :raises BadAddress: if an address is not valid.
    """

    _session: BlockingSession
    _delivered = TakenJob

    def __init__(
        self,
        addresses: str | Iterable[str] = "127.0.0.1:7711",
        password: str | None = None,
        *,
        tls: bool | TLS = False,
        timeout_s: float = 5.0,
        patience_s: float = 20.0,
        discover: bool | None = None,
        follow: bool = True,
        protocol: int = 2,
        environment: ClientEnvironment | None = None,
    ) -> None:
        target = Target.of(addresses, password, tls, timeout_s, discover, protocol)
        session = BlockingSession(
            target.seeds, target.options, target.discover, patience_s, environment
        )
        super().__init__(session, target.seeds, follow)

    def __enter__(self) -> Disque:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def servers(self) -> Servers:
        """Pipelined connections of one's own to the same nodes, none of them open yet."""
        return self._session.servers()

    def queue(self, name: Name, timeout: float | None = None) -> Queue:
        """The jobs of a queue, to iterate over; ends when none came for ``timeout`` seconds."""
        return Queue(name, lambda: self.dequeue(name, timeout))


class Queue:
    """A queue to iterate over: each step fetches a job. Jobs that are not acknowledged are
    delivered again.

    ``take``: returns the next job, or ``None`` to end the iteration when none came in time.
    """

    def __init__(self, name: str | bytes, take: Callable[[], TakenJob | None]) -> None:
        self.name = name
        self._take = take

    def __iter__(self) -> Iterator[TakenJob]:
        while (job := self._take()) is not None:
            yield job
