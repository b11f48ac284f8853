"""Jobs are added: where their copies go, and when the client has its answer."""
