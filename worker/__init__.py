"""neuco-worker: the only package that communicates with anything outside."""
