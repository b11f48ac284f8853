"""Items of a work queue, how their keys are named, and their form as bodies of Disque jobs.

A Disque job has an ID of its own, so an item's ID is part of the body::

    workqueue-item <length of id in bytes> <id>\\n<data>

Any other body is the data of an item whose ID is the job's: so jobs that were added by other
programs are items too.
"""

from __future__ import annotations

import hashlib
import json
import re
import uuid
from typing import Any, Final

import attrs

from disque_tx.workqueue.errors import NotJson


@attrs.frozen
class KeyPrefix:
    """The common beginning of the keys of a work queue. ``KeyPrefix("cv:").of("7")`` is ``cv:7``.

    :raises ValueError: when it is empty: the keys could then be those of other programs.
    """

    prefix: str = attrs.field()

    @prefix.validator
    def _not_empty(self, _attribute: object, value: str) -> None:
        if not value:
            raise ValueError("The key prefix of a work queue is empty. Give it a name.")

    def of(self, name: str) -> str:
        """The key of ``name``."""
        return self.prefix + name

    def concat(self, name: str) -> KeyPrefix:
        """A longer prefix: this one and then ``name``."""
        return KeyPrefix(self.prefix + name)


def _new_id() -> str:
    return uuid.uuid4().hex


@attrs.frozen
class Item:
    """A piece of work. ``id``: text, unique in its queue. ``data``: any bytes."""

    id: str = attrs.field()
    data: bytes = attrs.field(repr=False, validator=attrs.validators.instance_of(bytes))

    @id.validator
    def _is_text(self, _attribute: object, value: object) -> None:
        if not isinstance(value, str) or not value:
            raise ValueError("The ID of an item is text of one character or more.")

    @classmethod
    def create(cls, data: bytes | str, id: str | None = None) -> Item:
        """An item of these bytes, or of this text in UTF-8. ``id``: by default a random UUID."""
        return cls(_new_id() if id is None else id, _encoded(data))

    @classmethod
    def by_hash(cls, data: bytes | str) -> Item:
        """An item whose ID is the SHA-256 of its data, so that equal work is added once."""
        encoded = _encoded(data)
        return cls(hashlib.sha256(encoded).hexdigest(), encoded)

    @classmethod
    def from_json(cls, value: Any, id: str | None = None) -> Item:
        """An item whose data is the value as JSON. Equal values give equal bytes.

        :raises NotJson: when JSON cannot represent this value.
        """
        try:
            text = json.dumps(
                value, allow_nan=False, ensure_ascii=False, separators=(",", ":"), sort_keys=True
            )
            return cls.create(text, id)
        except (TypeError, ValueError, RecursionError) as error:
            raise NotJson(f"The value cannot be written as JSON ({error}).") from error

    def json(self) -> Any:
        """The data, parsed as JSON.

        :raises NotJson: when it is not JSON.
        """
        try:
            return json.loads(self.data)
        except (ValueError, RecursionError) as error:
            raise NotJson(f"The data of item {self.id!r} is not JSON.") from error

    def text(self) -> str:
        """The data as text.

        :raises UnicodeDecodeError: when it is not UTF-8.
        """
        return self.data.decode()


def _encoded(data: bytes | str) -> bytes:
    return data.encode() if isinstance(data, str) else bytes(data)


@attrs.frozen
class Counts:
    """The lengths of the lists. ``queue``: IDs that wait. ``processing``: IDs that are being worked
    on, or whose lease has expired and that no clean has returned yet."""

    queue: int
    processing: int


_HEAD: Final = re.compile(rb"workqueue-item (\d{1,7}) ")


def job_body(item: Item) -> bytes:
    """An item as the body of a Disque job."""
    name = item.id.encode(errors="surrogateescape")
    return b"workqueue-item %d %b\n%b" % (len(name), name, item.data)


def parse_job_body(body: bytes) -> tuple[str, bytes] | None:
    """The ID and data of an item, or ``None`` if the body has another format."""
    head = _HEAD.match(body)
    if head is None:
        return None
    end = head.end() + int(head[1])
    if end == head.end() or body[end : end + 1] != b"\n":
        return None
    return body[head.end() : end].decode(errors="surrogateescape"), body[end + 1 :]
