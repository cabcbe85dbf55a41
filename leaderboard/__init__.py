"""Score matrix and submission facts to standings and files."""
