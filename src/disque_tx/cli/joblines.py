"""Jobs as lines: for programs as JSON, for people with nothing that a terminal would obey."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TypeAlias

from disque_tx.cli.formatting import jsonable
from disque_tx.client.values import Job
from disque_tx.quoting import quote

#: Makes a line of a job.
Line: TypeAlias = Callable[[Job], bytes]


def as_json(job: Job) -> bytes:
    """An object with ``queue``, ``id`` and ``body``; a body that is not UTF-8 is
    ``{"base64": …}``."""
    values = {"queue": job.queue, "id": job.id, "body": jsonable(job.body)}
    return json.dumps(values).encode("ascii") + b"\n"


def as_body(job: Job) -> bytes:
    """The body as it is, and a line end."""
    return job.body + b"\n"


def as_text(job: Job) -> bytes:
    """ID and body, quoted."""
    return job.id.encode() + b" " + quote(job.body) + b"\n"
