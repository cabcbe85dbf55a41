"""What is in memory: ``scoring.score`` for data frames, arrays and dictionaries, and for files.

``containers`` turns what the caller has into arrays and tables of pandas, ``pairing`` decides which label belongs to which embedding, and
``kinds`` what a task predicts. All of them refuse what could be meant in two ways.
"""

__all__ = ["result", "score"]
