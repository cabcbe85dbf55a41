"""Reading and judging what comes from outside: submitted files, lists of ids, documents of YAML.

Its public modules: ``submission`` is the only code that touches what participants send, and runs in the limited child. None of them is
imported with the room, and none loads a training kernel, torch or polars: a tool that only validates a file needs this room alone.
"""

__all__ = [
    "correction",
    "csv_kernel",
    "documents",
    "embeddings",
    "faults",
    "identifiers",
    "in_order",
    "limits",
    "submission",
    "written",
]
