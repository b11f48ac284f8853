"""Clients of the nodes of a cluster for verbs: of any node, or of each one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import Timer
from types import TracebackType
from typing import Final, Generic, TypeVar

import attrs
import click

from disque_tx.cli import signals
from disque_tx.cli.options import ClientOptions
from disque_tx.client.addresses import Address
from disque_tx.client.blocking import Disque
from disque_tx.client.blocking.session import ClientEnvironment
from disque_tx.client.errors import ClientError, ConnectionLost
from disque_tx.client.values import Hello
from disque_tx.errors import DisqueError

#: How long to look for a node at the start, while a person waits.
_FIRST_S: Final = 0.5
#: After this time a message says what is being waited for.
_ANNOUNCE_AFTER_S: Final = 1.0
#: How long to look for another node in the middle of something.
_PATIENCE_S: Final = 20.0
#: A node that does not answer within this time counts as unreachable.
_NODE_S: Final = 3.0
#: How long any node may take for a reply.
_TIME_S: Final = 5.0
_AT_A_TIME: Final = 16
_T = TypeVar("_T")


class NobodyAnswers(DisqueError):
    """No node could be asked; the text says why, node by node."""


@attrs.frozen
class MemberAnswers(Generic[_T]):
    """``of``: address → what the node answered. ``silent``: address → why there is no answer."""

    of: dict[str, _T]
    silent: dict[str, str]


class Members:
    """Clients with the addresses, the password and the TLS of ``options``.

    ``nodes``, ``password``: used instead of those of the options. A client for each node, and one
    for any node, stay open until :meth:`close`.
    """

    def __init__(
        self, options: ClientOptions, nodes: Iterable[str] = (), password: str | None = None
    ) -> None:
        self.nodes = tuple(nodes) or options.nodes
        self._password = password or options.secret
        self._tls = options.encryption or False
        self._time_s = options.timeout_s or _TIME_S
        self._single: dict[str, Disque] = {}
        self._any_node = self._client(_FIRST_S)

    def __enter__(self) -> Members:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close all clients."""
        self._any_node.close()
        for client in self._single.values():
            client.close()

    def cluster(self) -> Disque:
        """A client that stays with one node until that fails, and then moves to another one.

        :raises ClientError: when no node answers now.
        """
        self._hello()
        return self._client(_PATIENCE_S)

    def _hello(self) -> Hello:
        with announced(f"Waiting for {', '.join(self.nodes)} to answer, up to {self._time_s:g} s"):
            return self._any_node.hello()

    def _client(self, patience_s: float) -> Disque:
        return Disque(
            self.nodes,
            self._password,
            tls=self._tls,
            timeout_s=self._time_s,
            patience_s=patience_s,
            follow=False,
            environment=ClientEnvironment(
                notify=_print_to_stderr if patience_s > _FIRST_S else None
            ),
        )

    def known(self) -> list[str]:
        """The addresses of all nodes, by HELLO of one. With TLS, those of the options: HELLO does
        not list TLS ports.

        :raises ClientError: no node answers.
        """
        if self._tls:
            return list(self.nodes)
        said = self._hello()
        return listed(said, str(self._any_node.address()))

    def ask(self, addresses: Iterable[str], question: Callable[[Disque], _T]) -> MemberAnswers[_T]:
        """Ask each node the same question, concurrently.

        :raises NobodyAnswers: no node answered.
        """
        found = self.try_to_ask(addresses, question)
        if not found.of:
            reasons = "; ".join(f"{address}: {why}" for address, why in found.silent.items())
            raise NobodyAnswers(f"No node answers ({reasons}).")
        return found

    def try_to_ask(
        self, addresses: Iterable[str], question: Callable[[Disque], _T]
    ) -> MemberAnswers[_T]:
        """Like :meth:`ask`, without an error when no node answers."""
        found: MemberAnswers[_T] = MemberAnswers({}, {})
        addresses = list(addresses)
        each_s = min(_NODE_S, self._time_s)
        asking = f"Waiting for {', '.join(addresses)} to answer, up to {each_s:g} s per question"
        with signals.postponed(), announced(asking), ThreadPoolExecutor(_AT_A_TIME) as pool:
            calls = {each: pool.submit(self._asked, each, question) for each in addresses}
        for address, call in calls.items():
            try:
                found.of[address] = call.result()
            except ConnectionLost as error:
                found.silent[address] = error.reason
            except ClientError as error:
                found.silent[address] = _reason(address, error)
        return found

    def _asked(self, address: str, question: Callable[[Disque], _T]) -> _T:
        return question(self._alone(address))

    def _alone(self, address: str) -> Disque:
        client = self._single.get(address)
        if client is None:
            client = Disque(
                [address],
                self._password,
                tls=self._tls,
                timeout_s=min(_NODE_S, self._time_s),
                patience_s=0,
                discover=False,
                follow=False,
            )
            self._single[address] = client
        return client


def _print_to_stderr(text: str) -> None:
    click.echo(text, err=True)


@contextmanager
def announced(text: str) -> Iterator[None]:
    """Print this on the error output if the block takes long."""
    timer = Timer(_ANNOUNCE_AFTER_S, _print_to_stderr, (text,))
    timer.daemon = True
    with signals.postponed():
        timer.start()
    try:
        yield
    finally:
        with signals.postponed():
            timer.cancel()


def _reason(address: str, error: ClientError) -> str:
    """Why one node could not be asked, without its address."""
    tried: dict[str, str] = getattr(error, "tried", {})
    return tried.get(address) or str(error)


def listed(said: Hello, here: str) -> list[str]:
    """The addresses of the nodes in an answer to HELLO that came from ``here``."""
    others = [
        str(Address(node.ip, node.port))
        for node in said.nodes
        if node.id != said.id and node.ip and node.port
    ]
    return [here, *others]
