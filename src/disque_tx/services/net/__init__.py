"""Sockets: the fast acceptor, listening, TLS certificates."""
