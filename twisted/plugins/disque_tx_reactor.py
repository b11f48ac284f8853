"""What ``twistd --reactor=disque`` finds. A file of its own, because it must be there before a
reactor is."""

from twisted.application.reactors import Reactor

disque = Reactor(
    "disque",
    "disque_tx.services.net.reactor",
    "epoll(7) based reactor that serves the clients of a Disque node in its own loop.",
)
