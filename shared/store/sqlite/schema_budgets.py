"""Tables of budgets and of what settles a gate's hold. Amounts are exact decimals, as text. Rule: requirements B03, B05, G04.

A `scope` of '' means that the budget is not narrowed to one.
"""

from __future__ import annotations

_LEDGER = "unit TEXT NOT NULL, per TEXT NOT NULL, period TEXT NOT NULL, scope TEXT NOT NULL"

BUDGET_TABLES = (
    f"""CREATE TABLE budget (
  {_LEDGER}, since_staged INTEGER NOT NULL, since_at_us INTEGER NOT NULL, PRIMARY KEY (unit, per, period, scope)
) STRICT, WITHOUT ROWID""",
    f"""CREATE TABLE ledger (
  {_LEDGER}, subject TEXT NOT NULL, window_at_us INTEGER NOT NULL, used TEXT NOT NULL,
  PRIMARY KEY (unit, per, period, scope, window_at_us, subject)
) STRICT, WITHOUT ROWID""",
    """CREATE TABLE usage_pending (
  id INTEGER PRIMARY KEY AUTOINCREMENT, attempt_id TEXT NOT NULL, work_id TEXT NOT NULL, scope TEXT NOT NULL,
  usage TEXT NOT NULL, staged_at_us INTEGER NOT NULL
) STRICT""",
    f"""CREATE TABLE budget_notice (
  {_LEDGER}, subject TEXT NOT NULL, window_at_us INTEGER NOT NULL, kind TEXT NOT NULL, limit_amount TEXT NOT NULL,
  told_in TEXT NOT NULL, told_at_us INTEGER NOT NULL,
  PRIMARY KEY (unit, per, period, scope, subject, window_at_us, kind, limit_amount, told_in)
) STRICT, WITHOUT ROWID""",
    """CREATE TABLE gate_settlement (
  key TEXT PRIMARY KEY, work_id TEXT NOT NULL REFERENCES work (id), holder TEXT NOT NULL,
  verdict TEXT NOT NULL CHECK (verdict IN ('admitted', 'refused')), settled_at_us INTEGER NOT NULL
) STRICT, WITHOUT ROWID""",
)

BUDGET_INDEXES = ("CREATE INDEX gate_settlement_work ON gate_settlement (work_id)",)

BUDGET_FENCES = (
    # name, when, condition, message
    ("budget_since", "UPDATE ON budget", "1", "a budget was configured for the first time once"),
    (
        "ledger_forward",
        "UPDATE ON ledger",
        "CAST(NEW.used AS REAL) < CAST(OLD.used AS REAL) OR NEW.subject <> OLD.subject",
        "a ledger went back",
    ),
    ("ledger_kept", "DELETE ON ledger", "OLD.window_at_us = 0", "a ledger for life was deleted"),
    ("usage_staged", "UPDATE ON usage_pending", "1", "staged usage was changed"),
    ("gate_settlement_kept", "UPDATE ON gate_settlement", "1", "a settlement of a gate was changed"),
)
