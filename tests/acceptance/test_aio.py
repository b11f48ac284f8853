"""The asyncio client with real daemons."""

from __future__ import annotations

import asyncio
import contextlib
import io
import re
from pathlib import Path
from typing import Final

from disque_tx.client import CannotConnect, NotEnoughReplicas, UnknownJob
from disque_tx.client.aio import Disque
from disque_tx.client.options import TLS
from tests.acceptance.cluster.fleet import Fleet
from tests.acceptance.daemon import DaemonTestCase, free_port
from tests.services.net.certificates import Authority

_ROOT: Final = Path(__file__).resolve().parents[2]
_HOW_TO: Final = _ROOT / "docs" / "how-to" / "use-the-asyncio-client.md"
_EXAMPLE: Final = re.compile(r"```python\n(.*?)```", re.DOTALL)
_UNKNOWN_ID: Final = "D-00000000-AAAAAAAAAAAAAAAAAAAAAAAA-05a1"


class OneNodeTests(DaemonTestCase):
    """One daemon."""

    def test_life(self) -> None:
        """A job can be added, fetched, renewed and acknowledged, with a password."""
        daemon = self.running("requirepass secret")

        async def use() -> None:
            async with Disque(f"disque://:secret@127.0.0.1:{daemon.port}") as client:
                job_id = await client.add_job("q", b"\0work", retry_s=60, ttl_s=600)
                shown = await client.show(job_id)
                assert shown is not None
                self.assertEqual(b"\0work", shown.body)
                taken = await client.dequeue("q", 5)
                assert taken is not None
                self.assertEqual(60, await taken.working())
                self.assertTrue(await taken.ack())
                with self.assertRaises(UnknownJob):
                    await client.working(_UNKNOWN_ID)
                with self.assertRaises(NotEnoughReplicas):
                    await client.add_job("q", "b", 100, replicate=5)

        asyncio.run(use())

    def test_blocked(self) -> None:
        """A consumer that waits gets the job as soon as it is added; one that was cancelled takes
        none with it."""
        daemon = self.running()

        async def use() -> None:
            async with Disque(f"127.0.0.1:{daemon.port}") as client:
                for number in range(20):
                    gone = asyncio.ensure_future(client.get_jobs("q"))
                    waiting = asyncio.ensure_future(client.get_jobs("q"))
                    await asyncio.sleep(0.01 * (number % 3))
                    gone.cancel()
                    job_id = await client.add_job("q", str(number))
                    found = await asyncio.wait_for(waiting, 30)
                    self.assertEqual([job_id], [job.id for job in found])
                    await client.ack_jobs(job_id)

        asyncio.run(use())

    def test_tls(self) -> None:
        """Encrypted connections check the node's certificate."""
        folder = Path(self.mktemp()).absolute()
        folder.mkdir()
        certificate, key = Authority(folder, "ca").issue("node")
        port = free_port()
        self.running(f"listen resp ssl:{port}:privateKey={key}:certKey={certificate}")

        async def ping(tls: bool | TLS) -> str:
            async with Disque(f"127.0.0.1:{port}", tls=tls, patience_s=0) as client:
                return await client.ping()

        trusting = TLS(ca_file=str(folder / "ca.pem"), check_hostname=False)
        self.assertEqual("PONG", asyncio.run(ping(trusting)))
        error = self.assertRaises(CannotConnect, lambda: asyncio.run(ping(True)))
        self.assertIn("CERTIFICATE_VERIFY_FAILED", str(error))

    def test_how_to(self) -> None:
        """The examples of the documentation can be run one after the other."""
        port = self.running().port
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            for program in _EXAMPLE.findall(_HOW_TO.read_text()):
                exec(program.replace("127.0.0.1:7711", f"127.0.0.1:{port}"), {})
        self.assertIn("sending to: bob", printed.getvalue())


class ClusterTests(DaemonTestCase):
    """Three nodes, of which one is killed."""

    def test_killed(self) -> None:
        """Jobs with copies are all delivered although the node that took them is killed."""
        fleet = Fleet(3)
        self.addCleanup(fleet.discard)
        fleet.start()
        addresses = [f"{node.ip}:{node.port}" for node in fleet.nodes]

        async def use() -> set[str]:
            async with Disque(addresses, timeout_s=2, patience_s=60) as client:
                adding = [client.add_job("q", "b", replicate=2, retry_s=2) for _ in range(50)]
                added = set(await asyncio.gather(*adding))
                current = str(await client.address())
                fleet.nodes[addresses.index(current)].kill()
                left = set(added)
                while left:
                    for taken in await client.take("q", count=10, timeout_s=60):
                        await taken.ack()
                        left.discard(taken.id)
                return added

        self.assertEqual(50, len(asyncio.run(use())))
