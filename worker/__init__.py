"""neuco-worker: talks to the world."""
