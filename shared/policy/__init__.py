"""Pure decisions: values and an Instant in, a decision out. No clock, disk, process or database in here."""
