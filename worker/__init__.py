"""The daemon and the commands of neuco-worker."""
