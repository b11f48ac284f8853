"""The HTTP server: connections, requests, answers in slices, sessions."""
