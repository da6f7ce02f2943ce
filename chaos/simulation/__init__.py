"""Histories of tenure under one seed: the production classes on a virtual clock, a simulated host, and seeded harm. Rule: design §9."""
