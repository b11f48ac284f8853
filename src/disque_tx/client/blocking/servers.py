"""Pipelined connections to nodes, and requests about jobs on several nodes.

The blocking client waits for each reply, which is right for programs that must know what became
of a job before they go on. Here thousands of jobs are handled in the same way: batches of Spark,
and the leases of frameworks.

The node that delivered a job knows it, and so do the others that hold a copy. So each request about
a job is sent to the former, and to the others when that one cannot be reached or does not know it.
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from itertools import islice
from typing import Any, Final, TypeVar, cast

import hiredis

from disque_tx.client.addresses import Address
from disque_tx.client.blocking.waiting import steps
from disque_tx.client.encryption import ssl_context
from disque_tx.client.errors import (
    BrokenReply,
    CannotConnect,
    ClientError,
    ConnectionLost,
    Refused,
    UnknownJob,
    printable,
    refusal,
)
from disque_tx.client.options import TLS, ConnectionOptions
from disque_tx.client.requests import encoding as requests
from disque_tx.client.requests import replies
from disque_tx.client.requests.encoding import Request
from disque_tx.client.requests.replies import MalformedReply

_T = TypeVar("_T")
_READ_BYTES: Final = 1 << 18
#: Sent before their replies are read: enough to keep the node busy, and little beside its buffers.
_REQUESTS_MAX: Final = 500
_REQUEST_BYTES_MAX: Final = 1 << 20
_NOTHING: Final = object()
_Answers = list[_T | ClientError]


class _ErrorReply(Exception):
    """An error reply."""


class PipelinedConnection:
    """An open connection to the node at ``address``.

    :raises ConnectionLost: when it cannot be opened.
    :raises AuthenticationRefused: when the password is missing or wrong.
    """

    def __init__(self, address: Address, options: ConnectionOptions) -> None:
        self.address = address
        self._timeout_s = options.timeout_s
        self._reader = hiredis.Reader(replyError=_ErrorReply, notEnoughData=_NOTHING)
        try:
            self._socket = _connected(address, options)
        except (OSError, ValueError) as error:
            raise self._lost(error, sent=False) from error
        if options.password is not None:
            self._log_in(options.password)

    def _log_in(self, password: str) -> None:
        try:
            self.call(requests.auth(password))
        except ClientError:
            self.close()
            raise

    def call(self, request: Request[_T]) -> _T:
        """Send a request and read its reply.

        :raises Refused: the error reply.
        :raises ConnectionLost: the connection ended, or there was no reply in time.
        :raises BrokenReply: a malformed reply.
        """
        for answer in self.calls([request]):
            if isinstance(answer, Refused):
                raise answer
            return answer
        raise AssertionError("a request without a reply")

    def calls(self, several: Sequence[Request[_T]]) -> Iterator[_T | Refused]:
        """The replies to many requests, in order; an error reply is yielded as an exception object.

        :raises ConnectionLost, BrokenReply: as for one.
        """
        for portion in _portions(several):
            self._send(b"".join(words for _, words in portion))
            for request, _ in portion:
                yield self._answer(request.name, request.parse, request.wait_s)

    def numbers(self, name: str, ids: Sequence[str]) -> list[int | Refused]:
        """The replies, which are numbers, to the same request about each of these jobs, in order.
        It does the same as :meth:`calls` in a fiftieth of the processor time.

        :raises ConnectionLost, BrokenReply: as for one.
        """
        answers: list[int | Refused] = []
        for at in range(0, len(ids), _REQUESTS_MAX):
            some = ids[at : at + _REQUESTS_MAX]
            self._send(requests.about_each(name, some))
            while left := at + len(some) - len(answers):
                found = self._answer(name, partial(self._numbers, name, left))
                answers += [found] if isinstance(found, Refused) else found
        return answers

    def _numbers(self, name: str, most: int, first: Any) -> list[int | Refused]:
        """A reply and those that came with it, which mostly are numbers. ``most``: how many."""
        several = [first, *islice(iter(self._reader.gets, _NOTHING), most - 1)]
        if set(map(type, several)) == {int}:
            return several
        return [
            refusal(name, str(self.address), str(reply))
            if isinstance(reply, _ErrorReply)
            else replies.integer(reply)
            for reply in several
        ]

    def close(self) -> None:
        """Close the connection; may be called again."""
        self._socket.close()

    def _send(self, data: bytes) -> None:
        try:
            self._socket.settimeout(self._timeout_s)
            self._socket.sendall(data)
        except OSError as error:
            self.close()
            raise self._lost(error, sent=True) from error

    def _answer(
        self, name: str, parse: Callable[[Any], _T], node_waits_s: float | None = 0.0
    ) -> _T | Refused:
        wait_s = None if node_waits_s is None else node_waits_s + self._timeout_s
        try:
            reply = self._reply(wait_s)
            if isinstance(reply, _ErrorReply):
                return refusal(name, str(self.address), str(reply))
            return parse(reply)
        except OSError as error:
            self.close()
            raise self._lost(error, sent=True) from error
        except (hiredis.HiredisError, MalformedReply) as error:
            self.close()
            raise BrokenReply(name, str(self.address), printable(str(error))) from error

    def _reply(self, wait_s: float | None) -> Any:
        reply = self._reader.gets()
        while reply is _NOTHING:
            data = self._received(wait_s)
            if not data:
                raise ConnectionResetError("the node closed the connection")
            self._reader.feed(data)
            reply = self._reader.gets()
        return reply

    def _received(self, wait_s: float | None) -> bytes:
        for step_s in steps(wait_s):
            self._socket.settimeout(step_s)
            with suppress(TimeoutError):
                return self._socket.recv(_READ_BYTES)
        raise TimeoutError("timed out")

    def _lost(self, error: Exception, sent: bool) -> ConnectionLost:
        reason = printable(str(error)).rstrip(".") or type(error).__name__
        return ConnectionLost(str(self.address), reason, sent)


def _portions(several: Sequence[Request[_T]]) -> Iterator[list[tuple[Request[_T], bytes]]]:
    """Requests with their bytes, in portions that may be sent at once."""
    portion: list[tuple[Request[_T], bytes]] = []
    size = 0
    for request in several:
        words: bytes = hiredis.pack_command(cast(Any, request.words))
        if portion and (len(portion) >= _REQUESTS_MAX or size + len(words) > _REQUEST_BYTES_MAX):
            yield portion
            portion, size = [], 0
        portion.append((request, words))
        size += len(words)
    if portion:
        yield portion


def _connected(address: Address, options: ConnectionOptions) -> socket.socket:
    sock = socket.create_connection((address.host, address.port), options.timeout_s)
    try:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        return sock if options.tls is None else _encrypted(sock, address.host, options.tls)
    except BaseException:
        sock.close()
        raise


def _encrypted(sock: socket.socket, host: str, tls: TLS) -> ssl.SSLSocket:
    return ssl_context(tls).wrap_socket(sock, server_hostname=host)


class Servers:
    """Connections to nodes, opened when they are needed. Not to be shared by threads."""

    def __init__(self, addresses: Sequence[Address], options: ConnectionOptions) -> None:
        self.addresses = tuple(addresses)
        self._options = options
        self._connections: dict[Address, PipelinedConnection] = {}

    def connection(self, address: Address) -> PipelinedConnection:
        """The connection to a node.

        :raises ConnectionLost, AuthenticationRefused: when there is none.
        """
        if address not in self._connections:
            self._connections[address] = PipelinedConnection(address, self._options)
        return self._connections[address]

    def any_connection(self, first: int) -> PipelinedConnection:
        """A connection to some node; ``first``: which one to try first.

        :raises CannotConnect: when no node can be reached.
        """
        tried: dict[str, str] = {}
        for address in rotated(self.addresses, first):
            try:
                return self.connection(address)
            except ConnectionLost as error:
                tried[str(address)] = error.reason
        raise CannotConnect(tried)

    def close(self) -> None:
        """Close all connections."""
        while self._connections:
            self._connections.popitem()[1].close()

    def ask(self, address: Address, several: Sequence[Request[_T]]) -> list[_T | ClientError]:
        """The answers of one node to requests that may be repeated.

        If the node cannot be reached, each answer is the reason.

        :raises AuthenticationRefused: when the password is missing or wrong.
        """
        return self._asked(address, len(several), lambda node: [*node.calls(several)])

    def _asked(
        self, address: Address, count: int, ask: Callable[[PipelinedConnection], _Answers[_T]]
    ) -> _Answers[_T]:
        known = address in self._connections
        try:
            return ask(self.connection(address))
        except ConnectionLost as error:
            self._connections.pop(address, None)
            # Nodes close connections that were idle for long.
            return self._asked(address, count, ask) if known else [error] * count

    def ask_once(self, address: Address, several: Sequence[Request[_T]]) -> list[_T | ClientError]:
        """The answers of one node to requests that must not be repeated.

        If the connection is lost, each missing answer is the reason; its ``sent`` says whether the
        request may have been executed nevertheless.

        :raises AuthenticationRefused: when the password is missing or wrong.
        """
        answers: list[_T | ClientError] = []
        try:
            for answer in self.connection(address).calls(several):
                answers.append(answer)
        except ConnectionLost as error:
            self._connections.pop(address, None)
            answers += [error] * (len(several) - len(answers))
        return answers

    def ask_holders(
        self,
        home: Address,
        ids: Sequence[str],
        request: Callable[[str], Request[_T]],
        is_missing: Callable[[_T | ClientError], bool],
    ) -> list[_T | ClientError]:
        """The answers to requests about jobs of the node ``home``, from it or from another holder.

        ``is_missing``: whether an answer means that the node does not know the job. If no other
        node knows it either, the answer is that of ``home``.
        """

        def ask(node: Address, some: Sequence[str]) -> _Answers[_T]:
            return self.ask(node, [*map(request, some)])

        return self._of_others(home, ids, ask(home, ids), ask, is_missing)

    def postpone(self, home: Address, ids: Sequence[str]) -> list[int | ClientError]:
        """WORKING for jobs of the node ``home``, as :meth:`ask_holders` does it: RETRY of each, in
        seconds, or why its next delivery was not postponed."""

        def ask(node: Address, some: Sequence[str]) -> list[int | ClientError]:
            return self._asked(node, len(some), lambda known: [*known.numbers("WORKING", some)])

        answers = ask(home, ids)
        if set(map(type, answers)) <= {int}:
            return answers
        return self._of_others(home, ids, answers, ask, lambda one: isinstance(one, UnknownJob))

    def _of_others(
        self,
        home: Address,
        ids: Sequence[str],
        answers: _Answers[_T],
        ask: Callable[[Address, Sequence[str]], _Answers[_T]],
        is_missing: Callable[[_T | ClientError], bool],
    ) -> _Answers[_T]:
        """The answers, with those of other holders where that of ``home`` is missing."""
        for other in self.addresses:
            unsettled = [
                number
                for number, answer in enumerate(answers)
                if isinstance(answer, ConnectionLost) or is_missing(answer)
            ]
            if not unsettled:
                break
            if other == home:
                continue
            second = ask(other, [ids[number] for number in unsettled])
            for number, answer in zip(unsettled, second, strict=True):
                if not isinstance(answer, ConnectionLost) and not is_missing(answer):
                    answers[number] = answer
        return answers


def rotated(addresses: Sequence[Address], first: int) -> list[Address]:
    """The addresses in turn, starting with number ``first``."""
    start = first % len(addresses)
    return [*addresses[start:], *addresses[:start]]
