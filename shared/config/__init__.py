"""Reading `tenure.toml`: strict, with the line of each fault. Importing this package imports no pydantic.

`durations` and `arguments` are standard library only; `loader` and `schema` are for the commands that read a file.
"""
