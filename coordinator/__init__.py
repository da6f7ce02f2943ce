"""Decides what starts, and takes back what was lost; meets the workers only in the store."""
