"""Requests to whichever node serves, for the Twisted client.

The rules are those of :mod:`disque_tx.client.blocking.session`. A call goes to the node of the
moment, or to the one it is meant for. When that is lost, leaves or loads, ``_again`` decides:
another node, after a rest if all have failed of late, or an exception.
"""

from __future__ import annotations

from random import Random
from typing import Any, TypeVar

import attrs
from twisted.internet.defer import Deferred, DeferredList
from twisted.logger import Logger

from disque_tx.client import requests
from disque_tx.client.addresses import Address, Seeds
from disque_tx.client.errors import (
    AuthenticationRefused,
    ClientError,
    ConnectionLost,
    Leaving,
    Loading,
    OutcomeUnknown,
)
from disque_tx.client.nodes import Nodes, Search
from disque_tx.client.options import ConnectionOptions
from disque_tx.client.requests import Request
from disque_tx.client.tx.calls import WAITING, Call
from disque_tx.client.tx.connection import Connection
from disque_tx.client.tx.links import Line, Links
from disque_tx.client.values import Hello

_T = TypeVar("_T")
_CLOSED = "the client was closed"
_log = Logger()


class TwistedSession:
    """Connections to the nodes of one cluster.

    ``patience_s``: how long a request looks for a node that serves, from its first failure on.
    ``connections_max``: how many GETJOBs wait at nodes at the same time.
    """

    def __init__(
        self,
        seeds: Seeds,
        options: ConnectionOptions,
        reactor: Any,
        learning: bool,
        patience_s: float,
        connections_max: int,
        random: Random,
    ) -> None:
        self.now_s = reactor.seconds
        self._reactor = reactor
        self._nodes = Nodes(seeds.addresses, random, learning)
        self._options = options
        self._patience_s = patience_s
        self._links: dict[Address, Links] = {}
        self._open: dict[Connection, None] = {}
        self._current: Links | None = None
        self._line = Line(connections_max, reactor, self._stood_too_long)
        self._resting: dict[Call[Any], Any] = {}
        self._closing = False
        self._said = False

    # -- requests ----------------------------------------------------------------------------

    def request(self, request: Request[_T]) -> Deferred[_T]:
        """Have a request executed by some node.

        The Deferred fails with :class:`CannotConnect` when no node served in time, with
        :class:`OutcomeUnknown` when it may or may not have been executed, and with
        :class:`Refused` and :class:`BrokenReply` by what the node answered. It may be cancelled.
        """
        return self._started(Call(self, request))

    def locate(self, request: Request[_T]) -> Deferred[tuple[Address, _T]]:
        """See :meth:`request`; also tells the node that answered."""
        return self._started(Call(self, request, located=True))

    def request_at(self, address: Address, request: Request[_T]) -> Deferred[_T]:
        """Have a request executed by this node, now or not at all; fails with
        :class:`ConnectionLost` when it cannot be reached, or the reply did not come."""
        return self._started(Call(self, request, address, strict=True))

    def request_near(self, address: Address, request: Request[_T]) -> Deferred[_T]:
        """Have a request executed by this node, or by another one if this does not serve."""
        return self._started(Call(self, request, address))

    def _started(self, call: Call[Any]) -> Deferred[Any]:
        self._dispatch(call)
        return call.deferred

    def _dispatch(self, call: Call[Any]) -> None:
        """Send it where it should go now."""
        if call.at is not None:
            links = self._linked(call.at)
        elif self._current is not None:
            links = self._current
        else:
            address, wait_s = self._nodes.pick(self.now_s())
            if wait_s > 0:
                self._resting[call] = self._reactor.callLater(wait_s, self._rested, call, address)
                return
            links = self._current = self._linked(address)
        self._send(call, links)

    def _rested(self, call: Call[Any], address: Address) -> None:
        """All had failed; now is the time for this one, unless a better one was found since."""
        del self._resting[call]
        if self._current is None:
            self._current = self._linked(address)
        self._dispatch(call)

    def _send(self, call: Call[Any], links: Links) -> None:
        if call.pace is not WAITING:
            links.send(call)
        elif self._line.has_room:
            connection = links.for_waiting()
            self._line.occupy(connection)
            connection.send(call)
        else:
            self._line.stand(call)

    def _stood_too_long(self, call: Call[Any]) -> None:
        """A GETJOB has used up its time before it got a connection: it found no job."""
        call.answer([], call.at or self._nodes.addresses()[0])

    # -- calls -------------------------------------------------------------------------------

    def cancelled(self, call: Call[Any]) -> None:
        """The calls'."""
        self._line.leave(call)
        timer = self._resting.pop(call, None)
        if timer is not None:
            timer.cancel()
        if call.carrier is not None:
            call.carrier.abandon(call)

    def unwanted(self, call: Call[Any], value: Any, address: Address) -> None:
        """The calls': jobs that nobody is there for any more go back to their queue. If that does
        not succeed, they are delivered again when their RETRY is over."""
        if call.request.words[0] == "GETJOB" and value:
            ids = [job.id for job in value]
            self.request_at(address, requests.nack(*ids)).addErrback(_ignored)

    def refused(self, connection: Connection, call: Call[Any], error: ClientError) -> None:
        """The connections'."""
        if call.cancelled:
            return
        if isinstance(error, Leaving | Loading) and not call.strict:
            call.carrier = None
            self._failed(connection.address)
            self._again(call, error.address, error)
        else:
            call.fail(error)

    def _again(self, call: Call[Any], address: str, error: ClientError) -> None:
        """What was not executed, or may be executed twice, tries another node while there is
        patience."""
        if call.strict or self._closing or isinstance(error, AuthenticationRefused):
            call.fail(error)
            return
        if call.at is not None:
            call.at = None
        else:
            if call.search is None:
                call.search = Search(self.now_s, self._patience_s, self._say)
            try:
                call.search.failed(address, error)
            except ClientError as enough:
                call.fail(enough)
                return
        self._dispatch(call)

    def _say(self, text: str) -> None:
        """Once, however many calls are looking, until a node serves."""
        if not self._said:
            self._said = True
            _log.warn("{text}", text=text)

    # -- connections -------------------------------------------------------------------------

    def _linked(self, address: Address) -> Links:
        links = self._links.get(address)
        if links is None:
            links = self._links[address] = Links(address, self._connection)
        return links

    def _connection(self, address: Address, pace: str) -> Connection:
        connection = Connection(address, self._options, self._reactor, self, pace)
        self._open[connection] = None
        return connection

    def opened(self, connection: Connection, said: Hello) -> None:
        """The connections': take in what the node says about all, and go to a better one if this
        one says it is not to be used; each call does so once."""
        self._said = False
        address, now_s = connection.address, self.now_s()
        self._nodes.learn(address, said)
        self._nodes.served(address)
        if not self._nodes.has_better(address, now_s):
            return
        calls = connection.withdraw()
        if any(map(_may_move, calls)):
            self._forsake(address)
        for call in calls:
            if _may_move(call):
                call.moved, call.carrier = True, None
                self._dispatch(call)
            else:
                connection.send(call)

    def unopened(self, connection: Connection, error: ClientError, calls: list[Call[Any]]) -> None:
        """The connections'."""
        self._ended(connection)
        if calls and not isinstance(error, AuthenticationRefused) and not self._closing:
            self._failed(connection.address)
        for call in calls:
            self._again(call, str(connection.address), error)

    def lost(self, connection: Connection, error: ConnectionLost, calls: list[Call[Any]]) -> None:
        """The connections': a node that hangs up where nobody waits has not failed."""
        self._ended(connection)
        if calls and not self._closing:
            self._failed(connection.address)
        for call in calls:
            if call.strict or call.request.repeatable:
                self._again(call, error.address, error)
            else:
                call.fail(OutcomeUnknown(call.request.name, error))

    def closed(self, connection: Connection) -> None:
        """The connections'."""
        self._open.pop(connection, None)

    def free(self, connection: Connection) -> None:
        """The connections'."""
        if not connection.usable:
            connection.close("it was left")
        elif connection.pace is WAITING:
            self._linked(connection.address).idle.append(connection)
        self._vacated(connection)

    def _ended(self, connection: Connection) -> None:
        links = self._links.get(connection.address)
        if links is not None:
            links.forget(connection)
            if not links and links is not self._current:
                del self._links[connection.address]
        self._vacated(connection)

    def _vacated(self, connection: Connection) -> None:
        successor = self._line.vacate(connection)
        if successor is not None:
            self._dispatch(successor)

    # -- nodes -------------------------------------------------------------------------------

    def _failed(self, address: Address) -> None:
        """It does not serve: other connections to it are of no use either."""
        self._nodes.failed(address, self.now_s())
        self._forsake(address)

    def _forsake(self, address: Address) -> None:
        if self._current is not None and self._current.address == address:
            self._current = None
        links = self._links.get(address)
        if links is not None:
            links.retire()

    def addresses(self) -> Deferred[list[Address]]:
        """All nodes of the cluster, by what the node of the moment now says of them."""
        return self.locate(requests.hello()).addCallback(self._learnt)

    def _learnt(self, located: tuple[Address, Hello]) -> list[Address]:
        self._nodes.learn(*located)
        return self._nodes.addresses()

    def follow(self, id_prefix: str) -> None:
        """Prefer the node whose ID begins like this, if it is known and well."""
        address = self._nodes.made(id_prefix, self.now_s())
        if address is None:
            return
        if self._current is not None and self._current.address != address:
            self._current.close_idle()
        self._current = self._linked(address)

    def set_password(self, password: str) -> None:
        """From now on connect with this password."""
        self._options = attrs.evolve(self._options, password=password)
        for links in list(self._links.values()):
            links.retire()

    def set_name(self, name: str) -> None:
        """Name the connections from now on, and the open one for quick requests now. Whether nodes
        take it is of no account."""
        self._options = attrs.evolve(self._options, name=name)
        if self._current is not None:
            named = Call(self, requests.set_name(name), self._current.address, strict=True)
            self._started(named).addErrback(_ignored)

    def close(self) -> Deferred[None]:
        """Close all connections; what is under way fails. Fires when they are closed."""
        self._closing = True
        for call in [*self._line.everybody(), *self._resting]:
            timer = self._resting.pop(call, None)
            if timer is not None:
                timer.cancel()
            call.fail(ConnectionLost(str(self._nodes.addresses()[0]), _CLOSED, sent=False))
        closed = [connection.close(_CLOSED) for connection in list(self._open)]
        self._closing = False
        self._current = None
        return DeferredList(closed).addCallback(_ignored)


def _may_move(call: Call[Any]) -> bool:
    return not call.moved and call.at is None


def _ignored(_: object) -> None:
    """Nothing is left to do."""
