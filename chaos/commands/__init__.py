"""The commands of `tenure drill`: one module for each, imported only when it is called."""
