"""EvalAI's endpoints, one module per noun."""

__all__ = ["challenge", "submission"]
