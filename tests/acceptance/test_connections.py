"""Connections under stress: many or large requests, and clients that are slow, misbehave or
disconnect."""

from __future__ import annotations

import random
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

from tests.acceptance.daemon import DaemonTestCase, environment, wait_for
from tests.acceptance.resp import ClosedError, Connection, encode

#: In a network namespace of its own; all its processes end with it.
_ISOLATED = ("unshare", "--net", "--map-root-user", "--pid", "--fork", "--kill-child")
_ROOT = Path(__file__).resolve().parents[2]


class TrafficTests(DaemonTestCase):
    """Large numbers of requests and of bytes."""

    def test_pipelining(self) -> None:
        """Ten thousand requests in one write are all answered, in order."""
        client = self.running().client()
        client.send_raw(b"".join(encode("PING", number) for number in range(10_000)))
        self.assertEqual(
            [b"%d" % number for number in range(10_000)], [client.read() for _ in range(10_000)]
        )

    def test_one_byte_at_a_time(self) -> None:
        """Requests may arrive in pieces of any size."""
        client = self.running().client()
        for byte in encode("ADDJOB", "q", b"a\r\nb", 0) + b"QLEN q\r\n":
            client.send_raw(bytes([byte]))
        self.assertEqual(40, len(client.read()))
        self.assertEqual(1, client.read())

    def test_large_body(self) -> None:
        """A body of 100 MB is delivered unchanged."""
        client = self.running().client()
        body = random.randbytes(1_000_000) * 100
        job_id = client.call("ADDJOB", "q", body, 0)
        jobs = client.call("GETJOB", "FROM", "q")
        self.assertEqual([b"q", job_id.encode()], jobs[0][:2])
        self.assertTrue(jobs[0][2] == body, "the body was changed")

    def test_slow_reader(self) -> None:
        """A client that does not read its replies delays no other client, and receives all of them
        later."""
        daemon = self.running()
        slow, other = daemon.client(), daemon.client()
        request = encode("PING", b"x" * 100_000)
        slow.sock.settimeout(60)
        slow.send_raw(encode("ADDJOB", "q", b"x" * 100_000, 0))
        slow.read()
        slow.send_raw(encode("QPEEK", "q", 1) * 500)
        for _ in range(100):
            other.call("PING")
        for _ in range(500):
            self.assertEqual(100_000, len(slow.read()[0][2]))
        slow.send_raw(request)
        self.assertEqual(b"x" * 100_000, slow.read())

    def test_one_does_not_starve_others(self) -> None:
        """A client that pipelines endlessly does not keep others from being served."""
        daemon = self.running()
        greedy, other = daemon.client(), daemon.client()
        requests = 1_000_000
        sending = threading.Thread(target=greedy.send_raw, args=(encode("PING") * requests,))
        reading = threading.Thread(target=self.read_lines, args=(greedy, requests))
        sending.start()
        reading.start()
        for _ in range(10):
            other.call("PING")
        self.assertTrue(reading.is_alive(), "served only when the other was done")
        sending.join()
        reading.join()

    def read_lines(self, client: Connection, count: int) -> None:
        """Read ``count`` lines."""
        while count > 0:
            count -= client.sock.recv(1 << 20).count(b"\n")


class EndTests(DaemonTestCase):
    """How connections end."""

    def test_half_closed(self) -> None:
        """Requests that were sent before the client stopped writing are executed and answered."""
        daemon = self.running()
        client, other = daemon.client(), daemon.client()
        client.send_raw(b"NACK\r\n" * 30_000 + encode("ADDJOB", "q", "b", 0))
        client.sock.shutdown(socket.SHUT_WR)
        self.assertEqual([0] * 30_000, [client.read() for _ in range(30_000)])
        self.assertEqual(40, len(client.read()))
        self.assertTrue(client.closed())
        self.assertEqual(1, other.call("QLEN", "q"))

    def test_gone_while_blocked(self) -> None:
        """A job is not delivered to a client that disconnected while it was waiting."""
        daemon = self.running()
        client, other = daemon.client(), daemon.client()
        client.send("GETJOB", "FROM", "q")
        wait_for(lambda: daemon.info()["blocked_clients"] == "1", "it is blocked")
        client.close()
        wait_for(lambda: daemon.info()["blocked_clients"] == "0", "the node has noticed")
        other.call("ADDJOB", "q", "b", 0)
        self.assertEqual(1, other.call("QLEN", "q"))

    def test_maxclients(self) -> None:
        """A client above the limit receives an error, and a later one is served when there is room
        again."""
        daemon = self.running("maxclients 3")
        clients = [daemon.client() for _ in range(3)]
        for client in clients:
            client.call("PING")
        self.assertEqual("ERR max number of clients reached", str(daemon.client().read()))
        info = clients[0].call("INFO", "stats")
        self.assertIn(b"rejected_connections:1\r\n", info)
        clients[2].close()
        wait_for(lambda: answered(daemon.client()), "there is room again")

    def test_idle(self) -> None:
        """``timeout`` closes idle connections, but not those of clients that wait for jobs."""
        daemon = self.running("timeout 1")
        idle, blocked = daemon.client(), daemon.client()
        idle.call("PING")
        blocked.send("GETJOB", "FROM", "q")
        began_s = time.monotonic()
        self.assertTrue(idle.closed())
        self.assertGreater(time.monotonic() - began_s, 0.9)
        daemon.client().call("ADDJOB", "q", "b", 0)
        self.assertEqual(b"q", blocked.read()[0][0])

    def test_output_limit(self) -> None:
        """``client-output-buffer-limit`` closes the connection of a client that does not read."""
        daemon = self.running("client-output-buffer-limit normal 2mb 0 0")
        client = daemon.client()
        client.call("ADDJOB", "q", bytes(1_000_000), 0)
        client.send_raw(encode("QPEEK", "q", 1) * 30)
        wait_for(lambda: "output-buffer-limit" in daemon.log(), "the limit is noticed")
        wait_for(lambda: daemon.info()["connected_clients"] == "1", "the connection is closed")
        with self.assertRaises(ClosedError):
            while True:
                client.read()

    def test_http_request(self) -> None:
        """When a web page makes a browser send a request to the port, the connection is closed and
        the body is not executed."""
        daemon = self.running()
        client = daemon.client()
        client.send_raw(b"POST / HTTP/1.1\r\nHost: x\r\n\r\nADDJOB q b 0\r\n")
        try:
            client.read()
        except ClosedError:
            pass
        self.assertTrue(client.closed())
        self.assertEqual(0, daemon.client().call("QLEN", "q"))

    def test_protocol_error(self) -> None:
        """Requests before a malformed one are answered, then comes the error, then the connection
        is closed."""
        client = self.running().client()
        client.send_raw(b"PING\r\n*1\r\n!4\r\nPING\r\nPING\r\n")
        self.assertEqual("PONG", client.read())
        self.assertEqual("ERR Protocol error: expected '$', got '!'", str(client.read()))
        self.assertTrue(client.closed())


class ProtectedModeTests(DaemonTestCase):
    """A node without a password serves only clients on its own host."""

    def test_from_outside(self) -> None:
        """A client with an address other than loopback is refused; runs in a network namespace of
        its own."""
        paths = environment()["PYTHONPATH"] + f":{_ROOT}"
        done = subprocess.run(
            [*_ISOLATED, sys.executable, "-c", _OUTSIDE],
            cwd=self.folder(),
            env=environment() | {"PYTHONPATH": paths},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        self.assertEqual(0, done.returncode, done.stderr)
        local, outside, opened, guarded = done.stdout.splitlines()
        self.assertEqual("PONG", local)
        self.assertRegex(
            outside, r"\ADENIED .*protected mode.*requirepass.*protected-mode no.*loopback"
        )
        self.assertEqual("PONG", opened)
        self.assertEqual("NOAUTH Authentication required.", guarded)


#: Runs in a network namespace that has only a loopback device.
_OUTSIDE = """\
import fcntl, socket, struct
from pathlib import Path
from tests.acceptance.daemon import Daemon

def request(number, data):
    with socket.socket() as sock:
        fcntl.ioctl(sock, number, data)

def address(text):
    return struct.pack("HH4s8x", socket.AF_INET, 0, socket.inet_aton(text))

SIOCSIFFLAGS, SIOCSIFADDR = 0x8914, 0x8916
IFF_UP_RUNNING = 0x41
request(SIOCSIFFLAGS, struct.pack("16sH14x", b"lo", IFF_UP_RUNNING))
request(SIOCSIFADDR, struct.pack("16s", b"lo:1") + address("10.99.0.1"))

def print_reply(where, *directives):
    folder = Path(where + "".join(directives).replace(" ", "-")).absolute()
    folder.mkdir()
    daemon = Daemon(folder, "bind 0.0.0.0", *directives).start()
    try:
        connection = daemon.client((where, daemon.port))
        if where != "127.0.0.1" and not directives:
            print(connection.read())
        else:
            print(connection.error("PING"))
    finally:
        daemon.discard()

print_reply("127.0.0.1")
print_reply("10.99.0.1")
print_reply("10.99.0.1", "protected-mode no")
print_reply("10.99.0.1", "requirepass x")
"""


def answered(client: Connection) -> bool:
    """Whether the client is served; closes the connection."""
    try:
        return client.error("PING") == "PONG"
    except ClosedError:
        return False
    finally:
        client.close()
