"""Executes requests at whichever node answers, for the Twisted client.

The rules are those of :mod:`disque_tx.client.blocking.session`. A call goes to the current node, or
to the one it names. When that is lost, leaves or loads, ``_retry`` decides: another node, after a
backoff if all have failed lately, or an exception.
"""

from __future__ import annotations

from random import Random
from typing import Any, TypeVar

import attrs
from twisted.internet.defer import Deferred, DeferredList, succeed
from twisted.logger import Logger

from disque_tx.client.addresses import Address, Seeds
from disque_tx.client.errors import (
    AuthenticationRefused,
    ClientError,
    ConnectionLost,
    Leaving,
    Loading,
    NameNotFound,
    OutcomeUnknown,
)
from disque_tx.client.nodes import LOOKUP_PAUSE_S, Nodes, Search
from disque_tx.client.options import ConnectionOptions
from disque_tx.client.requests import encoding as requests
from disque_tx.client.requests.encoding import Request
from disque_tx.client.steps import tracing
from disque_tx.client.tx.backoff import Backoff, look_up
from disque_tx.client.tx.calls import WAITING, Call, spanned, value_of
from disque_tx.client.tx.connection import Connection
from disque_tx.client.tx.pool import UNUSED, ConnectionPool, WaitQueue
from disque_tx.client.values import Hello

_T = TypeVar("_T")
_CLOSED = "the client was closed"
_log = Logger()


class TwistedSession:
    """Connections to the nodes of one cluster.

    ``patience_s``: how long a request looks for a node that answers, from its first failure on.
    ``connections_max``: how many GETJOBs wait at nodes at the same time.
    """

    def __init__(
        self,
        seeds: Seeds,
        options: ConnectionOptions,
        reactor: Any,
        *,
        discover: bool,
        patience_s: float,
        connections_max: int,
        random: Random,
    ) -> None:
        tracing.activate()
        self.now_s = reactor.seconds
        self._reactor = reactor
        self._nodes = Nodes(seeds.addresses, random, discover)
        self._options = options
        self._patience_s = patience_s
        self._pools: dict[Address, ConnectionPool] = {}
        self._open: dict[Connection, None] = {}
        self._current: ConnectionPool | None = None
        self._wait_queue = WaitQueue(connections_max, reactor, self._waited_too_long)
        self._backoff = Backoff(reactor)
        self._closing = False
        self._notified = False

    # -- requests ----------------------------------------------------------------------------

    def request(self, request: Request[_T]) -> Deferred[_T]:
        """Execute a request at any node.

        The Deferred fails with :class:`CannotConnect` when no node answered in time, with
        :class:`OutcomeUnknown` when it may or may not have been executed, and with :class:`Refused`
        and :class:`BrokenReply` by what the node answered. The Deferred may be cancelled.
        """
        if tracing.ACTIVE is not None:
            return self.request_located(request).addCallback(value_of)
        return self._started(Call(self, request))

    def request_located(self, request: Request[_T]) -> Deferred[tuple[Address, _T]]:
        """Like :meth:`request`; fires with the address of the node that answered, and the value."""
        active = tracing.ACTIVE
        span = None if active is None else active.begin(request.words)
        found = self._started(Call(self, request, located=True))
        return found if span is None else spanned(found, span)

    def request_at(self, address: Address, request: Request[_T]) -> Deferred[_T]:
        """Execute a request at this node, now or not at all; fails with
        :class:`ConnectionLost` when it cannot be reached, or the reply did not come."""
        return self._started(Call(self, request, address, strict=True))

    def request_near(self, address: Address, request: Request[_T]) -> Deferred[_T]:
        """Execute a request at this node, or at another one if this does not answer."""
        return self._started(Call(self, request, address))

    def _started(self, call: Call[Any]) -> Deferred[Any]:
        self._dispatch(call)
        return call.deferred

    def _dispatch(self, call: Call[Any]) -> None:
        """Choose a node and send the call there, after a backoff if all nodes have failed."""
        if call.at is not None:
            pool = self._pool_at(call.at)
        elif self._current is not None:
            pool = self._current
        else:
            look_up(self._reactor, self._nodes, self.now_s())
            try:
                address, wait_s = self._nodes.pick(self.now_s())
            except NameNotFound as error:
                self._backoff.wait(call, LOOKUP_PAUSE_S, self._unresolved, error)
                return
            if wait_s > 0:
                self._backoff.wait(call, wait_s, self._backoff_over, address)
                return
            pool = self._current = self._pool_at(address)
        self._send(call, pool)

    def _unresolved(self, call: Call[Any], error: NameNotFound) -> None:
        """There was no address; by now there may be one."""
        self._retry(call, error.name, error)

    def _backoff_over(self, call: Call[Any], address: Address) -> None:
        """Use the node that was chosen before the backoff, unless there is a current one again."""
        if self._current is None:
            self._current = self._pool_at(address)
        self._dispatch(call)

    def _send(self, call: Call[Any], pool: ConnectionPool) -> None:
        if call.pace is not WAITING:
            pool.send(call)
        elif self._wait_queue.has_room:
            connection = pool.for_waiting()
            self._wait_queue.acquire(connection)
            connection.send(call)
        else:
            self._wait_queue.enqueue(call)

    def _waited_too_long(self, call: Call[Any]) -> None:
        """A GETJOB has used up its time before it got a connection: it found no job."""
        call.answer([], call.at or self._nodes.addresses()[0])

    # -- calls -------------------------------------------------------------------------------

    def cancelled(self, call: Call[Any]) -> None:
        """Called by a call when the program cancels it."""
        self._wait_queue.remove(call)
        self._backoff.remove(call)
        if call.carrier is not None:
            call.carrier.abandon(call)

    def unwanted(self, call: Call[Any], value: Any, address: Address) -> None:
        """Called by a cancelled call: jobs in its answer go back to their queue. If that fails,
        they are delivered again when their RETRY is over."""
        if call.request.words[0] == "GETJOB" and value:
            ids = [job.id for job in value]
            self.request_at(address, requests.nack(*ids)).addErrback(_ignored)

    def refused(self, connection: Connection, call: Call[Any], error: ClientError) -> None:
        """Called by a connection when the reply to a call was an error, or malformed."""
        if call.cancelled:
            return
        if isinstance(error, Leaving | Loading) and not call.strict:
            call.carrier = None
            self._failed(connection.address)
            self._retry(call, error.address, error)
        else:
            call.fail(error)

    def _retry(self, call: Call[Any], address: str, error: ClientError) -> None:
        """Send a call that was not executed, or may be executed twice, to another node, until its
        search takes longer than ``patience_s``."""
        if call.strict or self._closing or isinstance(error, AuthenticationRefused):
            call.fail(error)
            return
        if call.at is not None:
            call.at = None
        else:
            if call.search is None:
                call.search = Search(self.now_s, self._patience_s, self._notify)
            try:
                call.search.failed(address, error)
            except ClientError as enough:
                call.fail(enough)
                return
        self._dispatch(call)

    def _notify(self, text: str) -> None:
        """Log that calls look for a node: once, however many do, until a node answers."""
        if not self._notified:
            self._notified = True
            _log.warn("{text}", text=text)

    # -- connections -------------------------------------------------------------------------

    def _pool_at(self, address: Address) -> ConnectionPool:
        pool = self._pools.get(address)
        if pool is None:
            pool = self._pools[address] = ConnectionPool(address, self._new_connection)
        return pool

    def _new_connection(self, address: Address, pace: str) -> Connection:
        connection = Connection(address, self._options, self._reactor, self, pace)
        self._open[connection] = None
        return connection

    def opened(self, connection: Connection, said: Hello) -> None:
        """Called by a connection when HELLO is answered: update the list of nodes, and if this node
        should not be used, send the calls to a better one. Each call moves at most once."""
        self._notified = False
        address, now_s = connection.address, self.now_s()
        self._nodes.learn(address, said)
        self._nodes.recovered(address)
        if not self._nodes.has_better(address, now_s):
            return
        calls = connection.withdraw()
        if any(map(_may_move, calls)):
            self._abandon_node(address)
        for call in calls:
            if _may_move(call):
                call.moved, call.carrier = True, None
                self._dispatch(call)
            else:
                connection.send(call)

    def unopened(self, connection: Connection, error: ClientError, calls: list[Call[Any]]) -> None:
        """Called by a connection that could not be opened."""
        self._ended(connection)
        if calls and not isinstance(error, AuthenticationRefused) and not self._closing:
            self._failed(connection.address)
        for call in calls:
            self._retry(call, str(connection.address), error)

    def lost(self, connection: Connection, error: ConnectionLost, calls: list[Call[Any]]) -> None:
        """Called by a connection that has ended. The node has failed only if calls were waiting."""
        self._ended(connection)
        if calls and not self._closing:
            self._failed(connection.address)
        for call in calls:
            if call.strict or call.request.repeatable:
                self._retry(call, error.address, error)
            else:
                call.fail(OutcomeUnknown(call.request.name, error))

    def closed(self, connection: Connection) -> None:
        """Called by a connection that is completely closed."""
        self._open.pop(connection, None)

    def free(self, connection: Connection) -> None:
        """Called by a connection whose calls are all answered."""
        if not connection.usable:
            connection.close(UNUSED)
        elif connection.pace is WAITING:
            self._pool_at(connection.address).idle.append(connection)
        self._released(connection)

    def _ended(self, connection: Connection) -> None:
        pool = self._pools.get(connection.address)
        if pool is not None:
            pool.forget(connection)
            if not pool and pool is not self._current:
                del self._pools[connection.address]
        self._released(connection)

    def _released(self, connection: Connection) -> None:
        successor = self._wait_queue.release(connection)
        if successor is not None:
            self._dispatch(successor)

    # -- nodes -------------------------------------------------------------------------------

    def _failed(self, address: Address) -> None:
        """The node does not answer, leaves or loads: stop using all connections to it."""
        self._nodes.failed(address, self.now_s())
        self._abandon_node(address)

    def _abandon_node(self, address: Address) -> None:
        if self._current is not None and self._current.address == address:
            self._current = None
        pool = self._pools.get(address)
        if pool is not None:
            pool.retire()

    def address(self) -> Deferred[Address]:
        """The current node; connects to one if there is none."""
        return self.request_located(requests.hello()).addCallback(_address)

    def addresses(self) -> Deferred[list[Address]]:
        """All nodes of the cluster, as the current node lists them now."""
        return self.request_located(requests.hello()).addCallback(self._learnt)

    def _learnt(self, located: tuple[Address, Hello]) -> list[Address]:
        self._nodes.learn(*located)
        return self._nodes.addresses()

    def follow(self, id_prefix: str) -> None:
        """Prefer the node whose ID begins with this, if it is known and usable."""
        address = self._nodes.with_id_prefix(id_prefix, self.now_s())
        if address is None:
            return
        if self._current is not None and self._current.address != address:
            self._current.close_idle()
        self._current = self._pool_at(address)

    def set_password(self, password: str) -> Deferred[None]:
        """Use this password for new connections, and stop using the open ones."""
        self._options = attrs.evolve(self._options, password=password)
        for pool in list(self._pools.values()):
            pool.retire()
        return succeed(None)

    def set_name(self, name: str) -> None:
        """Name new connections, and the open one for quick requests. A node that refuses the name
        is used without it."""
        self._options = attrs.evolve(self._options, name=name)
        if self._current is not None:
            named = Call(self, requests.set_name(name), self._current.address, strict=True)
            self._started(named).addErrback(_ignored)

    def close(self) -> Deferred[None]:
        """Close all connections; unanswered calls fail. Fires when they are closed."""
        self._closing = True
        for call in [*self._wait_queue.drain(), *self._backoff.drain()]:
            call.fail(ConnectionLost(self._nodes.shown(), _CLOSED, sent=False))
        closed = [connection.close(_CLOSED) for connection in list(self._open)]
        self._closing = False
        self._current = None
        return DeferredList(closed).addCallback(_ignored)


def _may_move(call: Call[Any]) -> bool:
    return not call.moved and call.at is None


def _address(found: tuple[Address, Hello]) -> Address:
    return found[0]


def _ignored(_: object) -> None:
    """Drop a result, or a failure that needs no handling."""
