"""RESP: requests and replies."""
