"""The random drill: seeded load and seeded harm on real processes, until quiet; then the checks. `tenure drill run`."""
