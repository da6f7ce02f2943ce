"""The embedded store: SQLite in WAL mode behind a fair queue. Rule: design §4; research "store"."""
