"""Protocols of listeners that come with the package, each built on the plugin interface alone."""
