"""Read and check files from outside: submissions, lists of ids and label files.

``tables`` reads what participants send; the worker runs it only in the limited child process. No module is imported with this package,
and none loads a training kernel or torch, because a tool that only validates a file needs nothing else.
"""

__all__ = [
    "archives",
    "columns",
    "embeddings",
    "fast_lines",
    "faults",
    "formats",
    "identifiers",
    "limits",
    "lines",
    "matrix_builder",
    "sniffing",
    "tables",
]
