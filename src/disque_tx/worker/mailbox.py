"""Dead letters where they lie: on all nodes, looked at and never fetched.

A queue is what each node has of it, so every node is asked. Letters about the same job are one
entry here: a worker that ended between writing a letter and acknowledging the job causes a second.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Final

import attrs

from disque_tx.client import ClientError, Job
from disque_tx.client.blocking import Disque
from disque_tx.worker.letters import Letter, NotALetter

#: Per node and queue.
LETTERS_MAX: Final = 10_000
_Opener = Callable[[str], AbstractContextManager[Disque]]


@attrs.frozen
class Entry:
    """A dead job. ``id``: of the job, or of the letter when that cannot be read. ``dead_queue``:
    where its letters lie. ``letters``: IDs of the letters. ``letter``: ``None`` when it cannot be
    read; then ``trouble`` says why."""

    id: str
    dead_queue: str
    letters: tuple[str, ...]
    letter: Letter | None
    trouble: str = ""


class Mailbox:
    """``client``: of the cluster. ``opened``: makes a client of one node from its address, for the
    others. ``unseen``: the addresses of nodes that could not be asked."""

    def __init__(self, client: Disque, opened: _Opener) -> None:
        self._client = client
        self._opened = opened
        self.unseen: list[str] = []

    def entries(self, queue: str | None, prefix: str) -> list[Entry]:
        """The letters in a queue; with ``None`` those in all queues whose names begin so."""
        found: dict[tuple[str, str], Entry] = {}
        for node in self._nodes():
            names = [queue] if queue is not None else self._names(node, prefix)
            for name in names:
                for job in node.queue_peek(name, LETTERS_MAX):
                    _merge(found, _entry(job, name))
        return list(found.values())

    def requeue(self, entry: Entry, letter: Letter, replicate: int | None = None) -> str:
        """Add the job to its queue again, with its RETRY, its copies and its whole TTL, which
        begins anew; then drop the letters. Returns the new ID.

        What ends in between leaves the letters, and to requeue them again doubles the job: look
        first, when it is told that an outcome is unknown.

        :raises OutcomeUnknown: the job may have been added; the letters are still there.
        """
        options = letter.terms.with_replicate(replicate)
        job_id = self._client.add_job_with(letter.queue, letter.body, options)
        self.drop(entry)
        return job_id

    def drop(self, entry: Entry) -> None:
        """Acknowledge the letters, which deletes them."""
        self._client.ack_jobs(*entry.letters)

    def _nodes(self) -> Iterator[Disque]:
        mine = self._client.hello()
        yield self._client
        for node in mine.nodes:
            if node.id == mine.id:
                continue
            address = f"[{node.ip}]:{node.port}" if ":" in node.ip else f"{node.ip}:{node.port}"
            try:
                with self._opened(address) as client:
                    client.ping()
                    yield client
            except ClientError:
                self.unseen.append(address)

    def _names(self, node: Disque, prefix: str) -> list[str]:
        return sorted({name for name in node.queue_scan() if name.startswith(prefix)})


def _entry(job: Job, queue: str) -> Entry:
    try:
        letter = Letter.decoded(job.body)
    except NotALetter as error:
        return Entry(job.id, queue, (job.id,), None, str(error))
    return Entry(letter.id, queue, (job.id,), letter)


def _merge(found: dict[tuple[str, str], Entry], entry: Entry) -> None:
    key = (entry.dead_queue, entry.id)
    known = found.get(key)
    if known is not None:
        ids = tuple(dict.fromkeys(known.letters + entry.letters))
        entry = attrs.evolve(known, letters=ids)
    found[key] = entry
