"""What Twisted finds: the plugin of disque_lines."""

from disque_lines import LinesPlugin

lines = LinesPlugin()
