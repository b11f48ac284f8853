"""Jobs of RQ as calls of tasks: what the hash of a job says, and whether it can be moved.

The call in a job of RQ is usually a pickle, which could run any code when it is read. It is read
without allowing it a single name of a class or a function: so only plain values get through, and
just these can be in the JSON of a task's job.
"""

from __future__ import annotations

import io
import json
import math
import pickle
import zlib
from collections.abc import Mapping
from typing import Any, Final, NoReturn

import attrs

from disque_tx.errors import DisqueError

_BYTES_MAX: Final = 64 * 1024 * 1024
_VALUES_MAX: Final = 1_000_000
#: Fields of the hash that ask for what a job of Disque would not do → why the job stays.
_MORE_THAN_A_CALL: Final = {
    "dependency_id": "it depends on another job",
    "dependency_ids": "it depends on other jobs",
    "success_callback_name": "it has a callback for success",
    "failure_callback_name": "it has a callback for failure",
    "stopped_callback_name": "it has a callback for when it is stopped",
    "repeats_left": "it is to be repeated",
    "group_id": "it belongs to a group",
    "webhooks": "it has webhooks",
    "rate_limit_key": "it has a rate limit",
}
_EMPTY: Final = (b"", b"0", b"[]", b"null")
_WAITS: Final = (b"queued", b"scheduled", b"created")
#: What PTTL says of a key that ends in this millisecond, and of one that has ended.
_OVER_MS: Final = (0, -2)


class CannotMove(DisqueError):
    """A job has to stay with RQ; the text says why."""


@attrs.frozen
class RQCall:
    """``body``: of the job of Disque, in the format of the worker's tasks. ``ttl_s``: how long RQ
    would keep the job waiting, ``None``: forever."""

    body: bytes
    ttl_s: float | None


def call_of(job_id: str, queue: str, fields: Mapping[bytes, bytes], ttl_ms: int) -> RQCall:
    """The call that the hash of a job describes. ``ttl_ms``: what PTTL says of its key.

    :raises CannotMove: the job is not a plain call, or is not waiting.
    """
    if b"data" not in fields or ttl_ms in _OVER_MS:
        raise CannotMove("RQ has no data of it; it expired, or was deleted")
    status = fields.get(b"status", b"queued")
    if status not in _WAITS:
        raise CannotMove(f"it is {status.decode(errors='replace')[:20]}, not waiting")
    for name, reason in _MORE_THAN_A_CALL.items():
        if fields.get(name.encode(), b"") not in _EMPTY:
            raise CannotMove(reason)
    function, instance, args, kwargs = _call(_decompressed(fields[b"data"]))
    if instance is not None:
        raise CannotMove("it calls a method of an object")
    about = {"id": job_id, "queue": queue}
    for name in ("created_at", "timeout"):
        value = fields.get(name.encode(), b"").decode(errors="replace")
        if value:
            about[name] = value
    call = {"task": function, "args": args, "kwargs": kwargs, "rq": about}
    body = json.dumps(call, ensure_ascii=False, separators=(",", ":"))
    return RQCall(_encoded(body), ttl_ms / 1000 if ttl_ms > 0 else None)


def _encoded(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise CannotMove("its arguments have text that is not Unicode") from None


def _decompressed(data: bytes) -> bytes:
    engine = zlib.decompressobj()
    try:
        plain = engine.decompress(data, _BYTES_MAX)
    except zlib.error:
        return data  # old versions of RQ did not compress
    if engine.unconsumed_tail or not engine.eof:
        raise CannotMove("its data is damaged, or larger than 64 MiB")
    return plain


class _PlainUnpickler(pickle.Unpickler):
    """Reads values without any class of their own."""

    def find_class(self, module_name: str, global_name: str, /) -> NoReturn:
        name = f"{module_name}.{global_name}"[:100]
        raise CannotMove(f"its arguments hold a {name}, which JSON cannot carry")

    def persistent_load(self, pid: Any) -> NoReturn:
        raise CannotMove("its data refers to something outside of it")


def _call(data: bytes) -> tuple[str, Any, list[Any], dict[str, Any]]:
    try:
        if data.lstrip()[:1] == b"[":
            value = json.loads(data)
        else:
            value = _PlainUnpickler(io.BytesIO(data)).load()
    except CannotMove:
        raise
    except Exception as error:
        # A damaged pickle may raise nearly anything.
        raise CannotMove(f"its data is neither a pickle nor JSON: {error}") from None
    if not (isinstance(value, tuple | list) and len(value) == 4 and isinstance(value[0], str)):
        raise CannotMove("its data is not a call")
    function, instance, args, kwargs = value
    try:
        args, kwargs = _Plain().of(args), _Plain().of(kwargs)
    except RecursionError:
        raise CannotMove("its arguments are nested too deeply") from None
    if not isinstance(args, list) or not isinstance(kwargs, dict):
        raise CannotMove("its data is not a call")
    return function, instance, args, kwargs


class _Plain:
    """Values as JSON carries them: tuples become lists. Limits how many there are: a few bytes of a
    pickle can stand for any number."""

    def __init__(self) -> None:
        self._count = 0

    def of(self, value: Any) -> Any:
        """Return the value unchanged.

        :raises CannotMove: JSON would make something else of it.
        """
        self._count += 1
        if self._count > _VALUES_MAX:
            raise CannotMove("it has too many arguments")
        if value is None or isinstance(value, bool | int | str):
            return value
        if isinstance(value, float) and math.isfinite(value):
            return value
        if isinstance(value, list | tuple):
            return [self.of(item) for item in value]
        if isinstance(value, dict) and all(isinstance(key, str) for key in value):
            return {key: self.of(item) for key, item in value.items()}
        if isinstance(value, dict):
            raise CannotMove("its arguments hold a dict whose keys are not text")
        raise CannotMove(f"its arguments hold a {type(value).__name__}, which JSON cannot carry")
