"""An item as the body of a Disque job, which has an ID of its own.

::

    workqueue-item <length of id in bytes> <id>\\n<data>

Any other body is the data of an item whose ID is the job's: so jobs that were added by other
programs are items too.
"""

from __future__ import annotations

import re
from typing import Final

from disque_tx.workqueue.items import Item

_HEAD: Final = re.compile(rb"workqueue-item (\d{1,7}) ")


def encode(item: Item) -> bytes:
    """The body for an item."""
    name = item.id.encode(errors="surrogateescape")
    return b"workqueue-item %d %b\n%b" % (len(name), name, item.data)


def decode(body: bytes) -> tuple[str, bytes] | None:
    """ID and data, or ``None`` when the body is another program's."""
    head = _HEAD.match(body)
    if head is None:
        return None
    end = head.end() + int(head[1])
    if end == head.end() or body[end : end + 1] != b"\n":
        return None
    return body[head.end() : end].decode(errors="surrogateescape"), body[end + 1 :]
