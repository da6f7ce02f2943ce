"""Launches attempts, holds their leases, and settles how they ended; meets the coordinator only in the store."""
