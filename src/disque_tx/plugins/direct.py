"""What protocols that work within the turns of the node import besides :mod:`disque_tx.plugins`:
the connection that they provide, the node as they use it, and jobs with notes about them.

These are the node's own classes, compiled where it is, so calls of them cost no more here.
"""

from disque_tx.commands.direct import DirectNode, DirectProtocol
from disque_tx.core.jobs.addrequest import AddRequest
from disque_tx.core.jobs.job import BACKOFF, DELAYED, IN_FLIGHT, Job
from disque_tx.core.jobs.notes import Note, NoteReader
from disque_tx.messages.records import QUEUED, JobRecord

__all__ = [
    "BACKOFF",
    "DELAYED",
    "IN_FLIGHT",
    "QUEUED",
    "AddRequest",
    "DirectNode",
    "DirectProtocol",
    "Job",
    "JobRecord",
    "Note",
    "NoteReader",
]
