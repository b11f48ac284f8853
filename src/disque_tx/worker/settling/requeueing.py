"""Dead letters are put back, each once, whoever else wants the same at the same time.

1. A node of disque-tx adds the job and ends the letter in one step: QMOVE.
2. With an original, or another number of copies, the letter is taken out of its queue first. Who
   takes it adds the job, then acknowledges the letter; if the job cannot be added, the letter goes
   back to its queue at once. After a crash it does so when its RETRY is over.
3. A letter that is not queued was put back, dropped or fetched by somebody else since it was
   listed. Letters that came from the log are queued first.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractContextManager, suppress

from disque_tx.client import CannotConnect, ClientError, Refused
from disque_tx.client.blocking import Disque
from disque_tx.client.options import AddOptions
from disque_tx.client.requests.moving import BACK
from disque_tx.worker.base.errors import WorkerError


class LetterTaken(WorkerError):
    """A letter that is not in its queue any more."""

    def __init__(self) -> None:
        super().__init__(
            "The letter is not in its queue any more: somebody else has put it back, dropped it or"
            " fetched it."
        )


class Requeueing:
    """The letters about one job. ``at``: gives the client of the node at an address. ``letters``:
    their IDs, and the address of the node that each is at; ``loaded``: those that are not queued
    yet since they came from the log."""

    def __init__(
        self,
        at: Callable[[str], AbstractContextManager[Disque]],
        letters: Mapping[str, str],
        loaded: Collection[str],
    ) -> None:
        self._at = at
        self._letters = letters
        self._loaded = loaded

    def move(self, dead_queue: str) -> str:
        """Let a node put the job back. Returns the ID of the letter, empty when a node refuses.

        :raises LetterTaken: there is no letter.
        """
        refused = False
        for letter_id, address in self._letters.items():
            with suppress(CannotConnect), self._at(address) as node:
                self._queue(node, letter_id)
                try:
                    if node.queue_move(dead_queue, BACK, job_ids=[letter_id], dead=True):
                        return letter_id
                except Refused:
                    refused = True
        if not refused:
            raise LetterTaken
        return ""

    def add(self, client: Disque, queue: str, body: bytes, options: AddOptions) -> None:
        """Take a letter out of its queue, and add the job.

        :raises LetterTaken: there is no letter.
        """
        for letter_id, address in self._letters.items():
            with suppress(CannotConnect), self._at(address) as node:
                self._queue(node, letter_id)
                if not node.dequeue_jobs(letter_id):
                    continue
                try:
                    client.add_job_with(queue, body, options)
                except BaseException:
                    with suppress(ClientError):
                        node.enqueue_jobs(letter_id)
                    raise
                return
        raise LetterTaken

    def _queue(self, node: Disque, letter_id: str) -> None:
        if letter_id in self._loaded:
            node.enqueue_jobs(letter_id)
