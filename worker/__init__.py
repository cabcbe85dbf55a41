"""The daemon and the commands of neuco-worker."""

__version__ = "0.1.0"
