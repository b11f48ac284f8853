"""What a work queue holds, and how its keys are named."""

from __future__ import annotations

import hashlib
import json
import uuid
from typing import Any

import attrs

from disque_tx.workqueue.errors import NotJson


@attrs.frozen
class KeyPrefix:
    """What stands before an identifier to make a key. ``KeyPrefix("cv:").of("7")`` is ``cv:7``.

    :raises ValueError: when it is empty: a work queue would then take keys of everybody.
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

        :raises NotJson: when JSON cannot say this value.
        """
        try:
            text = json.dumps(
                value, allow_nan=False, ensure_ascii=False, separators=(",", ":"), sort_keys=True
            )
            return cls.create(text, id)
        except (TypeError, ValueError, RecursionError) as error:
            raise NotJson(f"The value cannot be written as JSON ({error}).") from error

    def json(self) -> Any:
        """The value whose JSON the data is.

        :raises NotJson: when it is none.
        """
        try:
            return json.loads(self.data)
        except (ValueError, RecursionError) as error:
            raise NotJson(f"The data of item {self.id!r} is no JSON.") from error

    def text(self) -> str:
        """The data as text.

        :raises UnicodeDecodeError: when it is not UTF-8.
        """
        return self.data.decode()


def _encoded(data: bytes | str) -> bytes:
    return data.encode() if isinstance(data, str) else bytes(data)


@attrs.frozen
class Counts:
    """How many IDs stand in the lists. ``queue``: waiting. ``processing``: being worked on, or
    given up and not returned yet."""

    queue: int
    processing: int
