"""Executors: what turns a pinned snapshot into something the shim can launch."""
