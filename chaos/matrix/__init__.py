"""The matrix: every named boundary × who dies there × how, with what must come of it written down beside it."""
