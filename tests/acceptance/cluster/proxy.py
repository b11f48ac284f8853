"""The network between the nodes of a fleet: all bytes of the bus pass this proxy, which can hold
them."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Coroutine, Iterable
from typing import Any, TypeVar

_T = TypeVar("_T")
#: Source and target, both as IP addresses.
Way = tuple[str, str]


class Proxy:
    """A TCP proxy between addresses of this machine. Clients are distinguished by their address,
    and the other side sees that address, too.

    On ways that are ``stalled`` bytes are held until :meth:`heal`, and then delivered; on ways that
    are ``broken`` connections are reset, and new ones refused. A thread does the work.
    """

    def __init__(self) -> None:
        self.stalled: set[Way] = set()
        self.broken: set[Way] = set()
        self._loop = asyncio.new_event_loop()
        self._healed = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self._writers: dict[asyncio.StreamWriter, Way] = {}
        self._servers: list[asyncio.Server] = []
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    def _run(self, work: Coroutine[Any, Any, _T]) -> _T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(10)

    # -- called by tests ----------------------------------------------------------------------

    def front(self, ip: str, port: int, outside: str = "") -> int:
        """Open a new port, at ``ip`` or at ``outside``, that forwards to ``port`` at ``ip``."""
        return self._run(self._front(ip, port, outside or ip))

    def stall(self, ways: Iterable[Way]) -> None:
        """Hold the bytes on these ways; the connections stay open."""
        self._run(self._cut(self.stalled, ways))

    def reset(self, ways: Iterable[Way]) -> None:
        """Reset connections on these ways, existing and new ones."""
        self._run(self._cut(self.broken, ways))

    def heal(self) -> None:
        """Let everything pass again, beginning with the bytes held."""
        self._run(self._heal())

    def close(self) -> None:
        """Close all connections, and end the thread."""
        self._run(self._close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    # -- in the thread -----------------------------------------------------------------------

    async def _front(self, ip: str, port: int, outside: str) -> int:
        async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.current_task()
            assert task is not None
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
            caller = str(writer.get_extra_info("peername")[0])
            await self._serve(caller, (ip, port), reader, writer)

        server = await asyncio.start_server(accept, outside, 0)
        self._servers.append(server)
        return int(server.sockets[0].getsockname()[1])

    async def _serve(
        self,
        caller: str,
        target: tuple[str, int],
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        there, back = (caller, target[0]), (target[0], caller)
        self._writers[writer] = back
        if self.broken & {there, back}:
            self._drop(writer)
            return
        try:
            far_reader, far_writer = await asyncio.open_connection(*target, local_addr=(caller, 0))
        except OSError:
            self._drop(writer)
            return
        self._writers[far_writer] = there
        await asyncio.gather(
            self._pump(there, reader, far_writer), self._pump(back, far_reader, writer)
        )

    async def _pump(
        self, way: Way, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(1 << 16):
                while way in self.stalled:
                    await self._healed.wait()
                writer.write(data)
                await writer.drain()
        while way in self.stalled:  # the end of the stream is held, too
            await self._healed.wait()
        self._drop(writer)

    def _drop(self, writer: asyncio.StreamWriter) -> None:
        self._writers.pop(writer, None)
        writer.transport.abort()

    async def _cut(self, kind: set[Way], ways: Iterable[Way]) -> None:
        self._healed.clear()
        kind.update(ways)
        for writer, (source, target) in list(self._writers.items()):
            if self.broken & {(source, target), (target, source)}:
                self._drop(writer)

    async def _heal(self) -> None:
        self.stalled.clear()
        self.broken.clear()
        self._healed.set()

    async def _close(self) -> None:
        await self._heal()
        for server in self._servers:
            server.close()
        for writer in list(self._writers):
            self._drop(writer)
        if self._tasks:
            await asyncio.wait(set(self._tasks), timeout=5)


def between(left: Iterable[str], right: Iterable[str]) -> set[Way]:
    """All ways from one group of addresses to the other, and back."""
    one_way = {(a, b) for a in left for b in right}
    return one_way | {(b, a) for a, b in one_way}
