"""Processes of this host: launching, evidence, identity, locks and proof of stop. The only room that may signal or enumerate.

Importing this package imports nothing else: the zygote and the shim load parts of it without the rest.
"""
