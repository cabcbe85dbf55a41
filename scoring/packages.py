"""Task packages: a hidden task with all that makes it citable, comparable and testable (after Brain-Score's benchmarks).

A package is what a plain label file grows into: a folder with ``task.yaml`` and ``labels.csv``. It lies in a tasks folder beside label files
and other packages, and scores as they do; what it adds is its story and its own expectations, which ``task check`` tests.
"""
