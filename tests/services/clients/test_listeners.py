"""Where clients can connect."""

from __future__ import annotations

import fcntl
import os
import resource
import socket
import stat

from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.epollreactor import EPollReactor
from twisted.internet.error import ConnectionLost
from twisted.internet.interfaces import IWriteDescriptor
from twisted.internet.protocol import Factory
from twisted.internet.testing import MemoryReactorClock
from twisted.python.failure import Failure
from twisted.trial.unittest import SynchronousTestCase
from zope.interface.verify import verifyObject

from disque_tx.errors import ConfigError
from disque_tx.services.net import listening as unixports
from disque_tx.services.net.listening import listen_unix
from disque_tx.services.net.sockets import Connecting, FastPort, connect_tcp, listen_tcp
from tests.acceptance.daemon import free_port
from tests.services.doubles import Recorder
from tests.services.nodebench import NodeCase, drive
from tests.services.rootbench import RootCase


class OpenTests(RootCase):
    """The configured ports and sockets."""

    def connected(self, host: str, port: int) -> bytes:
        """The reply to PING at an address."""
        with socket.create_connection((host, port), 5) as client:
            client.sendall(b"PING\r\n")
            drive(self.reactor)
            return client.recv(100)

    def test_addresses(self) -> None:
        """Every address of ``bind`` is served, in both families."""
        self.settings = self.make_settings(
            port=free_port(), bind=["127.0.0.1", "::1"], unixsocket=""
        )
        self.started()
        for host in ("127.0.0.1", "::1"):
            self.assertEqual(b"+PONG\r\n", self.connected(host, self.settings.port), host)

    def test_wildcards(self) -> None:
        """Without ``bind`` both families are served."""
        self.settings = self.make_settings(port=free_port(), unixsocket="")
        self.started()
        for host in ("127.0.0.1", "::1"):
            self.assertEqual(b"+PONG\r\n", self.connected(host, self.settings.port), host)

    def test_taken(self) -> None:
        """Every configured address must be available; the error names the one that is not."""
        port = free_port()
        self.settings = self.make_settings(port=port, bind=["127.0.0.1"])
        with socket.create_server(("127.0.0.1", port)):
            root = self.make()
            self.addCleanup(root.stopService)
            with self.assertRaisesRegex(ConfigError, f"127.0.0.1:{port}: Address already in use"):
                root.privilegedStartService()

    def test_too_high(self) -> None:
        """There must be room for the bus port, too."""
        self.settings.port = 55_536
        root = self.make()
        self.addCleanup(root.stopService)
        with self.assertRaisesRegex(ConfigError, "at most 55535"):
            root.privilegedStartService()

    def test_nowhere(self) -> None:
        """A node without any port or socket does not start."""
        self.settings.unixsocket = ""
        root = self.make()
        self.addCleanup(root.stopService)
        with self.assertRaisesRegex(ConfigError, "not listen anywhere"):
            root.privilegedStartService()

    def test_unix_socket(self) -> None:
        """A stale socket is replaced, and the file mode is the configured one."""
        self.settings.unixsocketperm = 0o600
        with socket.socket(socket.AF_UNIX) as stale:
            stale.bind(self.settings.unixsocket)
        self.started()
        self.assertEqual(0o600, stat.S_IMODE(os.stat(self.settings.unixsocket).st_mode))
        self.assertEqual(b"+PONG\r\n", self.ask(self.dial(), "PING"))

    def test_unix_socket_of_another_node(self) -> None:
        """A socket in use is neither replaced nor removed by a node that fails to start."""
        first = self.started()
        nodes = {"dir": str(self.folder), "cluster_config_file": str(self.folder / "other.conf")}
        for changes in ({}, {"listen": [("resp", f"unix:{self.settings.unixsocket}")]}):
            self.settings = self.make_settings(**nodes, **changes, port=free_port())
            if changes:
                self.settings.unixsocket = ""
            second = self.make()
            with self.assertRaisesRegex(ConfigError, "another process listens there"):
                second.privilegedStartService()
            self.successResultOf(second.stopService())
            self.settings = self.make_settings()
            self.assertEqual(b"+PONG\r\n", self.ask(self.dial(), "PING"))
        self.stopped(first)
        self.assertFalse((self.folder / "d.sock").exists())

    def test_unix_socket_is_a_file(self) -> None:
        """A regular file is not mistaken for a stale socket."""
        (self.folder / "d.sock").write_text("precious")
        root = self.make()
        self.addCleanup(root.stopService)
        with self.assertRaisesRegex(ConfigError, "a file that is not a socket has this name"):
            root.privilegedStartService()
        self.assertEqual("precious", (self.folder / "d.sock").read_text())

    def test_unix_socket_was_replaced(self) -> None:
        """A node that stops does not remove the socket of its successor."""
        first = self.started()
        (self.folder / "d.sock").unlink()
        with socket.socket(socket.AF_UNIX) as other:
            other.bind(self.settings.unixsocket)
            self.stopped(first)
            self.assertTrue((self.folder / "d.sock").exists())

    def test_folder_free_again(self) -> None:
        """A node that has made its socket, or could not, keeps no other out of the folder, and no
        descriptor open."""
        before = len(os.listdir("/proc/self/fd"))
        path = self.path("own.sock")
        sock = listen_unix(path, 5, 0)
        self.addCleanup(sock.close)
        self.assertRaises(OSError, listen_unix, path, 5, 0)
        self.assertEqual(before + 1, len(os.listdir("/proc/self/fd")))
        folder = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY)
        self.addCleanup(os.close, folder)
        fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def test_busy_folder(self) -> None:
        """A locked folder is waited for, but not indefinitely."""
        fd = os.open(self.folder, os.O_RDONLY)
        self.addCleanup(os.close, fd)
        fcntl.flock(fd, fcntl.LOCK_EX)
        self.patch(unixports, "_TIMEOUT_S", 0.02)
        self.started()
        self.assertEqual(b"+PONG\r\n", self.ask(self.dial(), "PING"))

    def test_unix_socket_impossible(self) -> None:
        """The error names the path that cannot be used."""
        self.settings.unixsocket = "/no/such/folder/d.sock"
        root = self.make()
        self.addCleanup(root.stopService)
        with self.assertRaisesRegex(ConfigError, r"/no/such/folder/d\.sock.*No such file"):
            root.privilegedStartService()

    def test_endpoint(self) -> None:
        """``listen`` directives add endpoints, also served by the fast acceptor."""
        path = self.path("extra.sock")
        self.settings.listen = [("resp", f"unix:{path}")]
        self.started()
        self.assertEqual(b"+PONG\r\n", self.ask(self.dial(path), "PING"))
        self.assertIn(f"accept connections at unix:{path}", self.logged())

    def test_endpoint_address(self) -> None:
        """An endpoint listens on the address that it names, and on all of IPv4 without one."""
        ports = [free_port(), free_port()]
        self.settings.listen = [
            ("resp", f"tcp:{ports[0]}:interface=127.0.0.1"),
            ("resp", f"tcp:{ports[1]}"),
        ]
        shown = self.started().listeners.addresses()
        self.assertEqual([f"127.0.0.1:{ports[0]}", f"0.0.0.0:{ports[1]}"], shown[1:])

    def test_endpoint_closed(self) -> None:
        """INFO shows such an endpoint, and it is closed with the node."""
        path = self.path("extra.sock")
        self.settings.listen = [("resp", f"unix:{path}")]
        root = self.started()
        where = [f"unix:{self.folder}/{name}" for name in ("d.sock", "extra.sock")]
        shown = [f"unix:{os.path.abspath(one[5:])}" for one in root.listeners.addresses()]
        self.assertEqual(where, shown)
        self.stopped(root)
        self.assertFalse(os.path.exists(path))
        self.assertEqual([], root.listeners.addresses())

    def test_gone_in_that_moment(self) -> None:
        """A stale socket that somebody else removes while it is looked at is no error."""
        path = self.path("stale.sock")
        with socket.socket(socket.AF_UNIX) as stale:
            stale.bind(path)
            found = os.lstat(path)
        os.unlink(path)
        self.patch(os, "lstat", lambda _path: found)
        listen_unix(path, 5, 0o600).close()
        self.assertEqual(0o600, os.stat(path).st_mode & 0o777)

    def test_bad_endpoints(self) -> None:
        """The error shows the directive and what is wrong with it."""
        for endpoint in (
            "nonsense:1",
            "tcp:",
            "unix:/no/such/folder/x",
            "systemd:domain=INET:index=9",
        ):
            self.settings = self.make_settings(listen=[("resp", endpoint)])
            root = self.make()
            with self.assertRaises(ConfigError) as caught:
                root.privilegedStartService()
            self.assertTrue(str(caught.exception).startswith(f"listen resp {endpoint}: "))
            self.successResultOf(root.stopService())

    def test_no_socket_from_systemd(self) -> None:
        """The error says that the socket from systemd is missing, for example after a manual
        start."""
        self.settings = self.make_settings(listen=[("resp", "systemd:domain=INET:index=9")])
        root = self.make()
        with self.assertRaisesRegex(ConfigError, "systemd has passed no such socket"):
            root.privilegedStartService()
        self.successResultOf(root.stopService())

    def test_closed(self) -> None:
        """A stopped node accepts no more connections."""
        self.settings = self.make_settings(port=free_port(), bind=["127.0.0.1"])
        self.stopped(self.started())
        with self.assertRaises(ConnectionRefusedError):
            self.connected("127.0.0.1", self.settings.port)


class PortTests(NodeCase):
    """One listening socket."""

    def setUp(self) -> None:
        """A port with a hub."""
        super().setUp()
        self.protocols: list[Recorder] = []
        self.sock = listen_tcp("127.0.0.1", 0, 10)
        self.port = FastPort(self.reactor, self.hub, self.sock, Factory.forProtocol(self.protocol))
        self.port.startListening()

    def protocol(self) -> Recorder:
        """A new recording protocol."""
        self.protocols.append(Recorder())
        return self.protocols[-1]

    def client(self) -> socket.socket:
        """A connection to the port."""
        client = socket.create_connection(self.sock.getsockname())
        self.addCleanup(client.close)
        return client

    def read_without_descriptors(self) -> None:
        """Let the port accept while the process has no file descriptor left."""
        self.client()
        limits = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (3, limits[1]))
        try:
            self.port.doRead()
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, limits)

    def test_accepts_all(self) -> None:
        """All waiting connections are accepted at once."""
        for _ in range(5):
            self.client()
        self.port.doRead()
        self.assertEqual(5, len(self.protocols))
        self.port.stopListening()

    def test_out_of_descriptors(self) -> None:
        """Without file descriptors the port pauses for a moment instead of spinning."""
        self.read_without_descriptors()
        self.assertNotIn(self.port, self.reactor.getReaders())
        self.reactor.advance(0.2)
        drive(self.reactor)
        self.assertEqual(1, len(self.protocols))
        self.port.stopListening()

    def test_stopped_without_descriptors(self) -> None:
        """A port that was stopped during the pause does not resume."""
        self.read_without_descriptors()
        self.port.stopListening()
        self.reactor.advance(1)
        self.assertEqual(
            ([self.hub], []), (self.reactor.getReaders(), self.reactor.getDelayedCalls())
        )

    def test_names(self) -> None:
        """A host may be given by its name."""
        with listen_tcp("localhost", 0, 10) as sock:
            self.assertIn(sock.getsockname()[0], ("127.0.0.1", "::1"))
        self.port.stopListening()


class ConnectTests(SynchronousTestCase):
    """Outgoing connections."""

    def setUp(self) -> None:
        """A listening socket with room for one pending connection."""
        self.reactor = MemoryReactorClock()
        self.server = listen_tcp("127.0.0.1", 0, 0)
        self.addCleanup(self.server.close)

    def connect(self, source: str = "") -> Deferred[socket.socket]:
        """A connection after enough time to be established."""
        connecting = connect_tcp(self.reactor, self.server.getsockname(), source, 2)
        drive(self.reactor)
        return connecting

    def tearDown(self) -> None:
        """Whatever the outcome, nothing is left in the reactor."""
        self.assertEqual(([], []), (self.reactor.getWriters(), self.reactor.getDelayedCalls()))

    def test_made(self) -> None:
        """The socket is connected, from the requested address."""
        with self.successResultOf(self.connect("127.0.0.2")) as sock:
            self.assertEqual("127.0.0.2", sock.getsockname()[0])
            self.assertEqual(self.server.getsockname(), sock.getpeername())
            self.assertFalse(sock.getblocking())

    def test_refused(self) -> None:
        """No socket listens at the address."""
        address = self.server.getsockname()
        self.server.close()
        connecting = connect_tcp(self.reactor, address, "", 2)
        drive(self.reactor)
        self.failureResultOf(connecting, ConnectionRefusedError)

    def test_refused_under_epoll(self) -> None:
        """Some reactors report a refused connection as lost instead of writable."""
        address = self.server.getsockname()
        self.server.close()
        reactor = EPollReactor()
        self.addCleanup(self.close_reactor, reactor)
        connecting = connect_tcp(reactor, address, "", 2)
        reactor.doIteration(2)
        self.failureResultOf(connecting, ConnectionRefusedError)

    def close_reactor(self, reactor: EPollReactor) -> None:
        """Close its file descriptors."""
        for reader in reactor.removeAll():
            reader.connectionLost(Failure(ConnectionLost()))
        reactor._poller.close()

    def hang(self) -> Deferred[socket.socket]:
        """A connection that is not accepted."""
        for _ in range(10):
            connecting = self.connect()
            if not connecting.called:
                return connecting
            self.addCleanup(self.successResultOf(connecting).close)
        raise AssertionError("everybody was let in")

    def test_takes_too_long(self) -> None:
        """The attempt ends after its timeout."""
        connecting = self.hang()
        self.reactor.advance(1.9)
        self.assertNoResult(connecting)
        self.reactor.advance(0.2)
        self.failureResultOf(connecting, TimeoutError)

    def test_cancelled(self) -> None:
        """It can be cancelled at any time."""
        connecting = self.hang()
        connecting.cancel()
        self.failureResultOf(connecting, CancelledError)

    def test_impossible(self) -> None:
        """Host names are not resolved, and a source address that is not local is refused at
        once."""
        connecting = connect_tcp(self.reactor, ("localhost", 1), "", 2)
        self.assertIn("not a literal address", str(self.failureResultOf(connecting, OSError)))
        self.failureResultOf(self.connect("192.0.2.1"), OSError)

    def test_interface(self) -> None:
        """Every reactor can watch it."""
        with socket.socket() as sock:
            verifyObject(IWriteDescriptor, Connecting(self.reactor, sock))
