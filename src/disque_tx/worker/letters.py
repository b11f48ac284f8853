"""Dead letters: jobs that could not be done, with the reason, as jobs of another queue."""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from typing import Any, Final

import attrs

from disque_tx.client.options import AddOptions, options_from_id
from disque_tx.worker.errors import WorkerError

#: Letters of version 1 do not say what the job was added with.
_VERSION: Final = 2
_READ: Final = (1, _VERSION)
_TEXTS: Final = ("queue", "id", "reason", "traceback", "worker")
_NUMBERS: Final = ("nacks", "additional_deliveries", "failed_at_s")
_TERMS: Final = ("retry_s", "ttl_s", "replicate")


class NotALetter(WorkerError):
    """A job in a queue of dead letters that is none."""


@attrs.frozen
class Letter:
    """A job that could not be done.

    ``queue``, ``id``, ``body``: of the job. ``traceback``: the end of it. ``worker``: who wrote the
    letter, at ``failed_at_s`` seconds since the epoch. ``nacks``, ``additional_deliveries``: of the
    last delivery. ``history``: earlier failures that this worker saw: seconds since the epoch, and
    reason. ``retry_s``, ``ttl_s``, ``replicate``: what the job was added with, ``None`` where that
    is not known.
    """

    queue: str
    id: str
    body: bytes = attrs.field(repr=False)
    reason: str
    traceback: str
    worker: str
    nacks: int
    additional_deliveries: int
    failed_at_s: float
    history: tuple[tuple[float, str], ...] = ()
    retry_s: int | None = None
    ttl_s: int | None = None
    replicate: int | None = None

    @property
    def terms(self) -> AddOptions:
        """What to add the job with again. What the letter does not say is in the job's ID, as far
        as that goes: a job with RETRY 0 stays one."""
        told = options_from_id(self.id)
        if self.retry_s is None:
            return attrs.evolve(told, replicate=told.replicate or self.replicate)
        ttl_s = self.ttl_s or told.ttl_s
        return AddOptions(retry_s=self.retry_s, ttl_s=ttl_s, replicate=self.replicate)

    def encoded(self) -> bytes:
        """The body of the dead letter, JSON."""
        values = attrs.asdict(self, recurse=False)
        values["body"] = b64encode(self.body).decode()
        values["history"] = [{"at_s": at_s, "reason": reason} for at_s, reason in self.history]
        return json.dumps({"version": _VERSION, **values}).encode()

    @classmethod
    def decoded(cls, body: bytes) -> Letter:
        """The letter that a body holds.

        :raises NotALetter: none.
        """
        try:
            values = json.loads(body)
            if values.pop("version") not in _READ:
                raise ValueError("it has another version")
            values["body"] = b64decode(values["body"], validate=True)
            values["history"] = tuple(
                (float(entry["at_s"]), str(entry["reason"])) for entry in values["history"]
            )
            _check(values)
            return cls(**{name: values[name] for name in _FIELDS if name in values})
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise NotALetter(f"This is not a dead letter: {error}.") from None

    def table(self) -> dict[str, Any]:
        """The letter for people and for JSON; the body as text where it is text."""
        values = attrs.asdict(self, recurse=False)
        values["history"] = [{"at_s": at_s, "reason": reason} for at_s, reason in self.history]
        try:
            values["body"] = self.body.decode()
        except UnicodeDecodeError:
            del values["body"]
            values["body_base64"] = b64encode(self.body).decode()
        return values


#: What else stands in a letter is of a later version.
_FIELDS: Final = tuple(field.name for field in attrs.fields(Letter))


def _check(values: dict[str, Any]) -> None:
    for name in _TEXTS:
        if not isinstance(values[name], str):
            raise ValueError(f"{name} is no text")
    for name in _NUMBERS:
        if not isinstance(values[name], int | float):
            raise ValueError(f"{name} is no number")
    for name in _TERMS:
        value = values.get(name)
        if value is not None and (type(value) is not int or not 0 <= value < 2**32):
            raise ValueError(f"{name} is no whole number")
