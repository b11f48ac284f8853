"""disque-tx: the distributed job queue Disque 1.0-rc1, as a daemon on Twisted."""

__version__ = "1.0.0.dev0"
