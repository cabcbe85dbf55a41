"""The evaluation script as EvalAI imports it."""

from .main import evaluate as evaluate
