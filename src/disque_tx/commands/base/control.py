"""The only way from a command to input and output: what it may ask of the process. The services
implement it, and so does the simulator.
"""

from __future__ import annotations

from mypy_extensions import mypyc_attr

from disque_tx.core.base.client import Client


@mypyc_attr(allow_interpreted_subclasses=True)
class Control:
    """What the process does on request. Every method that can fail raises ``CommandError``."""

    def config_get(self, pattern: bytes) -> list[tuple[bytes, bytes]]:
        """Name and value of every visible parameter that matches the glob pattern."""
        raise NotImplementedError

    def config_set(self, name: bytes, value: bytes) -> None:
        """Set a parameter at run time (client protocol, section 9)."""
        raise NotImplementedError

    def config_rewrite(self) -> None:
        """Write the parameters in force to the file they came from."""
        raise NotImplementedError

    def audit(self, text: str) -> None:
        """Keep a line for operators about a request that changed how the node works."""

    def password(self) -> bytes:
        """``requirepass`` in force; empty when no password is needed."""
        raise NotImplementedError

    def readonly_password(self) -> bytes:
        """``readonly-password`` in force; empty when there is none."""
        return b""

    def password_wait_s(self, client: Client) -> int:
        """For how many seconds no password is accepted from the network of this client, after too
        many wrong ones; 0 if one is."""
        return 0

    def password_was_wrong(self, client: Client) -> None:
        """The client has sent a wrong password."""

    def info_server(self) -> list[tuple[str, str]]:
        """Fields of INFO's Server section, in order; ``disque_version`` is among them."""
        raise NotImplementedError

    def info_memory(self) -> list[tuple[str, str]]:
        """``used_memory_rss`` in bytes and ``mem_allocator``, for INFO's Memory section."""
        raise NotImplementedError

    def info_persistence(self) -> list[tuple[str, str]]:
        """Fields of INFO's Persistence section, in order."""
        raise NotImplementedError

    def info_cpu(self) -> list[tuple[str, str]]:
        """Fields of INFO's CPU section, in order."""
        raise NotImplementedError

    def info_eventlog(self) -> list[tuple[str, str]]:
        """Fields of INFO's Eventlog section, in order."""
        raise NotImplementedError

    def job_events(self, job_id: bytes, number: int) -> tuple[int, bool, list[bytes]] | None:
        """A part of the events of a job in the event log of this process, the first one if the
        number is 0: the number with which to go on, 0 at the end; at the end, whether all of the
        log was looked at; and events, as objects of JSON. ``None`` if the log is off."""
        return None

    def info_listening(self) -> list[tuple[str, str]]:
        """Fields of INFO's Listening section, in order."""
        raise NotImplementedError

    def info_processes(self) -> list[tuple[str, str]]:
        """Fields of INFO's Processes section, in order."""
        raise NotImplementedError

    def loading(self) -> bool:
        """The log is being loaded; most commands are refused."""
        raise NotImplementedError

    def write_error(self) -> str:
        """Why the log cannot be written at present; empty when it can."""
        raise NotImplementedError

    def background_rewrite(self) -> None:
        """Start rewriting the log; refused while one is running."""
        raise NotImplementedError

    def reload_log(self) -> None:
        """Flush the node and load the log again (DEBUG LOADAOF)."""
        raise NotImplementedError

    def save_nodes(self) -> None:
        """Write the nodes file and sync it, or ``error saving the cluster node config: ...``."""
        raise NotImplementedError

    def save_policies(self) -> None:
        """Write the policies file and sync it; ``The policies can't be saved: ...``."""
        raise NotImplementedError

    def save_schedules(self) -> None:
        """Write the schedules file and sync it; ``The schedules can't be saved: ...``."""
        raise NotImplementedError

    def shutdown(self, rewrite_log: bool) -> None:
        """Stop the process in an orderly way, after writing a full log if asked."""
        raise NotImplementedError

    def sleep(self, seconds: float) -> None:
        """Block the whole process (DEBUG SLEEP)."""
        raise NotImplementedError

    def restart(self, graceful: bool, delay_ms: int) -> None:
        """Replace the process by a fresh one (DEBUG RESTART, CRASH-AND-RECOVER)."""
        raise NotImplementedError

    def crash(self, how: str) -> None:
        """Crash on purpose: ``segfault``, ``assert`` or ``oom``."""
        raise NotImplementedError

    def reset_statistics(self) -> None:
        """Zero what the process itself counts: the delayed syncs of the log (CONFIG RESETSTAT)."""
        raise NotImplementedError

    def set_protocol(self, client: Client, version: int) -> None:
        """Write replies to the client in RESP2 or RESP3 from now on (HELLO)."""
        raise NotImplementedError

    def client_buffers(self, client: Client) -> tuple[int, int, int]:
        """Bytes of unprocessed input, bytes waiting to be sent, and pieces they lie in."""
        raise NotImplementedError

    def local_ip(self, client: Client) -> bytes:
        """The address at which the client reached this node; loopback for one of this machine."""
        raise NotImplementedError
