"""The demo: a complete hidden-task challenge on one machine, with real data and the real worker."""

__all__ = ["data", "demo"]
