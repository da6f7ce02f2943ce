"""Shared pieces of the tests: bounded waiting, real processes."""
