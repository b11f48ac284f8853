"""The commands of Disque on a reactor, each with a Deferred of its typed result.

Any Deferred may be cancelled: a request that was not sent is not sent then; the reply to one that
was is dropped when it comes. So a job whose ADDJOB was cancelled may have been added, and stays.
Jobs in the reply to a cancelled GETJOB are given back with NACK.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, TypeVar

from twisted.internet.defer import Deferred

from disque_tx.client import requests
from disque_tx.client.addresses import Address
from disque_tx.client.channels import Steps
from disque_tx.client.commands import DeferredCommands, Wait
from disque_tx.client.errors import ClientError, ConnectionLost, ScanInterrupted
from disque_tx.client.nodes import Origins
from disque_tx.client.requests import Name, Scan
from disque_tx.client.tx.session import TwistedSession
from disque_tx.client.values import Job

_T = TypeVar("_T")


class TwistedCommands(DeferredCommands):
    """The commands of Disque, executed by a session.

    ``follow``: whether to move to the node that most delivered jobs come from.
    """

    _session: TwistedSession

    def __init__(self, session: TwistedSession, follow: bool = True) -> None:
        self._session = session
        self._origins = Origins() if follow else None

    def _perform_steps(self, steps: Steps[_T]) -> Deferred[_T]:
        return Deferred.fromCoroutine(self._stepped(steps))

    async def _stepped(self, steps: Steps[_T]) -> _T:
        try:
            step = next(steps)
            while True:
                try:
                    answer = await step(self._session)
                except ClientError as error:
                    step = steps.throw(error)
                else:
                    step = steps.send(answer)
        except StopIteration as end:
            result: _T = end.value
            return result

    async def _pages(self, scan: Scan[_T]) -> AsyncIterator[_T]:
        address, (cursor, items) = await self._session.locate(scan.page(0))
        while True:
            for item in items:
                yield item
            if not cursor:
                return
            try:
                cursor, items = await self._session.request_at(address, scan.page(cursor))
            except ConnectionLost as lost:
                raise ScanInterrupted(scan.command, lost) from lost

    def get_jobs(
        self, *queues: Name, count: int = 1, timeout_ms: int = 0, no_hang: bool = False
    ) -> Deferred[list[Job]]:
        """GETJOB: up to ``count`` jobs of the queues, the first queue first.

        Waits until there is one, for ``timeout_ms`` at most (0: for ever), or with ``no_hang``
        not at all; an empty list then. It looks first, on the connection of all short requests;
        only when there is nothing, it waits on a connection of its own.
        """
        return self._fetch(queues, count, timeout_ms, no_hang).addCallback(_value)

    def _fetch(
        self, queues: tuple[Name, ...], count: int, timeout_ms: int, no_hang: bool
    ) -> Deferred[tuple[Address, list[Job]]]:
        """See :meth:`get_jobs`; also tells the node that delivered."""
        found = self._session.locate(requests.get_jobs(queues, count))
        if not no_hang:
            wait = Wait(self._session.now_s, timeout_ms)
            found.addCallback(self._looked, queues, count, wait)
        return found if self._origins is None else found.addCallback(self._counted, self._origins)

    def _looked(
        self,
        found: tuple[Address, list[Job]],
        queues: tuple[Name, ...],
        count: int,
        wait: Wait,
    ) -> tuple[Address, list[Job]] | Deferred[tuple[Address, list[Job]]]:
        if found[1]:
            return found
        return Deferred.fromCoroutine(self._waited(found, queues, count, wait))

    async def _waited(
        self,
        found: tuple[Address, list[Job]],
        queues: tuple[Name, ...],
        count: int,
        wait: Wait,
    ) -> tuple[Address, list[Job]]:
        while not found[1] and (wait_ms := wait.next_ms()):
            found = await self._session.locate(requests.get_jobs(queues, count, wait_ms))
        return found

    def _counted(
        self, found: tuple[Address, list[Job]], origins: Origins
    ) -> tuple[Address, list[Job]]:
        maker = origins.saw(found[1])
        if maker is not None:
            self._session.follow(maker)
        return found

    def address(self) -> Deferred[Address]:
        """The node of the moment."""
        return self._session.locate(requests.hello()).addCallback(_address)

    def auth(self, password: str) -> Deferred[None]:
        """AUTH: connect anew, now and from now on, with this password.

        Fails with :class:`AuthenticationRefused` when it is not the right one.
        """
        self._session.set_password(password)
        return self.ping().addCallback(_nothing)


def _address(found: tuple[Address, Any]) -> Address:
    return found[0]


def _value(found: tuple[Address, _T]) -> _T:
    return found[1]


def _nothing(_: object) -> None:
    """For results that say nothing."""
