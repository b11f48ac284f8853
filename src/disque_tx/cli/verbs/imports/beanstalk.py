"""A client of beanstalkd, as much of its text protocol as an import needs."""

from __future__ import annotations

import socket
from typing import BinaryIO, Final

import attrs

from disque_tx.cli.verbs.imports.outcome import SourceFailed

_PORT: Final = 11_300
_TIMEOUT_S: Final = 30.0
_LINE_MAX: Final = 1024
_BODY_MAX: Final = 1 << 30
_NAME_MAX: Final = 200


@attrs.frozen
class FoundTubeJob:
    """A job of a tube: its number, and its body."""

    id: int
    body: bytes


def address_of(text: str) -> tuple[str, int]:
    """``host``, ``host:port`` or ``[host]:port``.

    :raises SourceFailed: it is none of these.
    """
    host, colon, port = text.removeprefix("beanstalk://").rstrip("/").rpartition(":")
    if not colon or (host.startswith("[") and not host.endswith("]")):
        host, port = text.removeprefix("beanstalk://").rstrip("/"), str(_PORT)
    if not host or not port.isascii() or not port.isdigit() or not 0 < int(port) < 65_536:
        raise SourceFailed(f"The address of a beanstalkd looks like 127.0.0.1:11300, not {text!r}.")
    return host.strip("[]"), int(port)


class Beanstalk:
    """A connection. Jobs that it has reserved go back to the others when it ends.

    Every method raises :class:`SourceFailed` when the server cannot be reached, or its answer is
    not one of the protocol's.
    """

    def __init__(self, address: str) -> None:
        self._address = address
        try:
            self._socket = socket.create_connection(address_of(address), _TIMEOUT_S)
        except OSError as error:
            why = error.strerror or str(error)
            raise SourceFailed(f"beanstalkd at {address} cannot be reached: {why}.") from None
        self._stream: BinaryIO = self._socket.makefile("rb")

    def close(self) -> None:
        """End the connection."""
        self._stream.close()
        self._socket.close()

    def tubes(self) -> list[str]:
        """The names of all tubes."""
        return sorted(
            line.removeprefix("- ").strip("\"'") for line in self._yaml("list-tubes", "OK")
        )

    def tube_stats(self, tube: str) -> dict[str, str] | None:
        """The figures of a tube; ``None`` if there is none of this name."""
        return self._stats(f"stats-tube {_checked(tube)}")

    def job_stats(self, job_id: int) -> dict[str, str] | None:
        """The figures of a job; ``None`` if it is gone."""
        return self._stats(f"stats-job {job_id}")

    def use(self, tube: str) -> None:
        """Reserve from this tube only, and look at its jobs."""
        name = _checked(tube)
        self._expect(f"use {name}", "USING")
        self._expect(f"watch {name}", "WATCHING")
        for other in self._yaml("list-tubes-watched", "OK"):
            watched = other.removeprefix("- ").strip("\"'")
            if watched != name:
                self._expect(f"ignore {watched}", "WATCHING")

    def reserve(self) -> FoundTubeJob | None:
        """The most urgent ready job; nobody else gets it while its TTR lasts."""
        return self._job("reserve-with-timeout 0", ("RESERVED", "TIMED_OUT", "DEADLINE_SOON"))

    def peek(self, state: str) -> FoundTubeJob | None:
        """The first job that is ``delayed``, ``buried`` or ``ready``, which stays there."""
        return self._job(f"peek-{state}", ("FOUND", "NOT_FOUND"))

    def release(self, job_id: int, priority: int) -> None:
        """Give a reserved job back now."""
        self._call(f"release {job_id} {priority} 0")

    def delete(self, job_id: int) -> bool:
        """Whether it was there, and nobody else had reserved it."""
        return self._expect(f"delete {job_id}", "DELETED", "NOT_FOUND")[0] == "DELETED"

    # -- requests and answers ----------------------------------------------------------------

    def _job(self, request: str, words: tuple[str, ...]) -> FoundTubeJob | None:
        word, *numbers = self._expect(request, *words)
        if word != words[0]:
            return None
        if len(numbers) != 2:
            raise self._unexpected(request, word)
        return FoundTubeJob(self._number(request, numbers[0]), self._body(request, numbers[1]))

    def _stats(self, request: str) -> dict[str, str] | None:
        lines = self._yaml(request, "OK", "NOT_FOUND")
        pairs = (line.partition(":") for line in lines)
        return {name: value.strip().strip("\"'") for name, _, value in pairs} or None

    def _yaml(self, request: str, *words: str) -> list[str]:
        """The lines of an answer; the server's YAML is one level of names and values."""
        word, *numbers = self._expect(request, *words)
        if word != "OK" or len(numbers) != 1:
            return []
        lines = self._body(request, numbers[0]).decode(errors="replace").splitlines()
        return [line for line in lines if line and line != "---"]

    def _expect(self, request: str, *words: str) -> list[str]:
        answer = self._call(request).split(" ")
        if answer[0] not in words:
            raise self._unexpected(request, " ".join(answer))
        return answer

    def _call(self, request: str) -> str:
        try:
            self._socket.sendall(request.encode() + b"\r\n")
            line = self._stream.readline(_LINE_MAX)
        except OSError as error:
            raise self._lost(error.strerror or str(error)) from None
        if not line.endswith(b"\n"):
            raise self._lost("it closed the connection")
        return line.decode(errors="replace").rstrip("\r\n")

    def _body(self, request: str, size: str) -> bytes:
        count = self._number(request, size)
        if count > _BODY_MAX:
            raise self._unexpected(request, f"a body of {count} bytes")
        try:
            data = self._stream.read(count + 2)
        except OSError as error:
            raise self._lost(error.strerror or str(error)) from None
        if len(data) != count + 2 or not data.endswith(b"\r\n"):
            raise self._lost("it closed the connection within an answer")
        return data[:-2]

    def _number(self, request: str, text: str) -> int:
        if not text.isascii() or not text.isdigit() or len(text) > 20:
            raise self._unexpected(request, text)
        return int(text)

    def _lost(self, why: str) -> SourceFailed:
        return SourceFailed(f"beanstalkd at {self._address}: {why}.")

    def _unexpected(self, request: str, answer: str) -> SourceFailed:
        return SourceFailed(f"beanstalkd at {self._address} answers {request!r} with {answer!r}.")


def _checked(tube: str) -> str:
    right = tube.isascii() and not tube.startswith("-") and 0 < len(tube) <= _NAME_MAX
    if not right or any(char.isspace() or not char.isprintable() for char in tube):
        raise SourceFailed(f"{tube!r} cannot be the name of a tube.")
    return tube
