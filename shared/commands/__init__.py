"""The commands of `tenure` that belong to no other room, one module each, imported when called."""
