"""Read and check files from outside: submissions, lists of ids and YAML documents.

``submission`` reads what participants send; the worker runs it only in the limited child process. No module is imported with this package,
and none loads a training kernel, torch or polars, because a tool that only validates a file needs nothing else.
"""

__all__ = [
    "csv_kernel",
    "documents",
    "embeddings",
    "faults",
    "identifiers",
    "in_order",
    "limits",
    "submission",
]
