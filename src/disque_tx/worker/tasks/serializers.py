"""Serializers: values to the bodies of jobs, and back.

There is none for pickle: whoever can add a job could make the worker run any code.
"""

from __future__ import annotations

import json

from zope.interface import Attribute, Interface, implementer

from disque_tx.worker.base.errors import NotSerializable, Undecodable


class ISerializer(Interface):
    """Values to bytes and back. Bodies are untrusted input for ``loads``."""

    name = Attribute("Its name, a str.")

    def dumps(value: object) -> bytes:  # noqa: N805
        """The bytes of a value.

        :raises NotSerializable: when it is of a type that cannot be sent.
        """

    def loads(body: bytes) -> object:  # noqa: N805
        """The value of these bytes. If this raises anything, the job becomes a dead letter."""


@implementer(ISerializer)
class JSON:
    """JSON in UTF-8, the default: text, numbers, booleans, ``None``, lists, and dicts with text as
    keys."""

    name = "json"

    def dumps(self, value: object) -> bytes:
        try:
            return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
        except (TypeError, ValueError, RecursionError) as error:
            raise NotSerializable(f"JSON cannot carry this value: {error}.") from error

    def loads(self, body: bytes) -> object:
        try:
            return json.loads(body)
        except (ValueError, RecursionError) as error:
            raise Undecodable(f"The body is not JSON: {error}.") from error


@implementer(ISerializer)
class Raw:
    """Bytes as they are. A :class:`~disque_tx.worker.Queue` with it has one task, whose only
    argument is the body."""

    name = "raw"

    def dumps(self, value: object) -> bytes:
        if not isinstance(value, bytes):
            raise NotSerializable(f"Raw carries bytes, not {type(value).__name__}.")
        return value

    def loads(self, body: bytes) -> object:
        return body
