"""The connections of clients: admission, protocols, listeners."""
