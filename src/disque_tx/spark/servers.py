"""The nodes of a query, and jobs on them.

A job is known to the node that delivered it, and to the others that hold a copy. So each request
about a job goes to the former, and to the others when that one is away or knows nothing of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from disque_tx.client.addresses import Address
from disque_tx.client.errors import CannotConnect, ClientError, ConnectionLost
from disque_tx.client.options import ConnectionOptions
from disque_tx.client.requests import Request
from disque_tx.spark.pipe import Pipe

_T = TypeVar("_T")


class Servers:
    """Connections to nodes, opened when they are needed. Not to be shared by threads."""

    def __init__(self, addresses: Sequence[Address], options: ConnectionOptions) -> None:
        self.addresses = tuple(addresses)
        self._options = options
        self._pipes: dict[Address, Pipe] = {}

    def pipe(self, address: Address) -> Pipe:
        """The connection to a node.

        :raises ConnectionLost, AuthenticationRefused: when there is none.
        """
        if address not in self._pipes:
            self._pipes[address] = Pipe(address, self._options)
        return self._pipes[address]

    def any_pipe(self, first: int) -> Pipe:
        """A connection to some node; ``first``: which one to try first.

        :raises CannotConnect: when no node can be reached.
        """
        tried: dict[str, str] = {}
        for address in rotated(self.addresses, first):
            try:
                return self.pipe(address)
            except ConnectionLost as error:
                tried[str(address)] = error.reason
        raise CannotConnect(tried)

    def close(self) -> None:
        """Hang up everywhere."""
        while self._pipes:
            self._pipes.popitem()[1].close()

    def ask(self, address: Address, several: Sequence[Request[_T]]) -> list[_T | ClientError]:
        """The answers of one node to requests that may be repeated.

        Where it cannot be reached, each answer is why.

        :raises AuthenticationRefused: when it wants another password.
        """
        known = address in self._pipes
        try:
            return [*self.pipe(address).calls(several)]
        except ConnectionLost as error:
            self._pipes.pop(address, None)
            # Nodes close connections on which nothing was said for long.
            return self.ask(address, several) if known else [error] * len(several)

    def ask_once(self, address: Address, several: Sequence[Request[_T]]) -> list[_T | ClientError]:
        """The answers of one node to requests that must not be repeated.

        Where the connection is lost, each answer that is missing is why; ``sent`` says whether the
        request may have been executed all the same.

        :raises AuthenticationRefused: when the node wants another password.
        """
        answers: list[_T | ClientError] = []
        try:
            for answer in self.pipe(address).calls(several):
                answers.append(answer)
        except ConnectionLost as error:
            self._pipes.pop(address, None)
            answers += [error] * (len(several) - len(answers))
        return answers

    def ask_holders(
        self,
        home: Address,
        ids: Sequence[str],
        request: Callable[[str], Request[_T]],
        is_missing: Callable[[_T | ClientError], bool],
    ) -> list[_T | ClientError]:
        """The answers on jobs of the node ``home``, from there or from another holder.

        ``is_missing``: whether an answer means that the node does not know the job. Where nobody
        knows better, the answer is that of ``home``.
        """
        answers = self.ask(home, [request(job_id) for job_id in ids])
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
            second = self.ask(other, [request(ids[number]) for number in unsettled])
            for number, answer in zip(unsettled, second, strict=True):
                if not isinstance(answer, ConnectionLost) and not is_missing(answer):
                    answers[number] = answer
        return answers


def rotated(addresses: Sequence[Address], first: int) -> list[Address]:
    """The same, beginning elsewhere."""
    start = first % len(addresses)
    return [*addresses[start:], *addresses[:start]]
