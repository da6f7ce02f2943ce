"""Stores as full as one of years, made in seconds, and what the daily steps cost on them."""
