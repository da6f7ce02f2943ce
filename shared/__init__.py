"""What coordinator and worker have in common: values, decisions, the store, processes, and the command."""

DISTRIBUTION = "tenure"
