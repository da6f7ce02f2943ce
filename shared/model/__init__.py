"""Frozen values that every room agrees on; no behaviour beyond validation, no I/O, no clock."""
