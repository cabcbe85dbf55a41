"""EvalAI wants an evaluation script in every challenge; this one has nothing to do.

The challenge is marked ``remote_evaluation``: neuco-worker fetches submissions, scores them on the organizers' machine,
and posts the results.
"""


def evaluate(*_arguments, **_keywords):
    """Refuse to run: this is called only if remote evaluation is switched off."""
    raise RuntimeError("This challenge is evaluated remotely. Set remote_evaluation to True.")
