"""Requests and replies of all clients, without input and output."""
