"""Embeddings and hidden tasks to score cells: a pure function."""
