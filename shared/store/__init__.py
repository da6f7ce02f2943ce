"""The store: the only place where coordinator, workers and commands meet."""
