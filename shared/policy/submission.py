"""What two requests under one key must have in common to be one. Rule: O01; the content decides, not who asks."""

from __future__ import annotations

import hashlib
import json
import unicodedata
from collections.abc import Sequence

from shared.ids import WorkId
from shared.model.work import NewWork

KEY_CHARS_MAX = 200


def key_fault(key: str) -> str | None:
    """Why a text is no key; None: it is one."""
    if not key:
        return "is empty"
    if len(key) > KEY_CHARS_MAX:
        return f"is {len(key)} characters long, {KEY_CHARS_MAX} are allowed"
    if any(unicodedata.category(sign).startswith("C") for sign in key):
        return "holds a character that cannot be shown"
    return None


def work_digest(work: NewWork) -> str:
    """Equal for requests for the same Work."""
    content = [
        "work", work.scope, work.binding, work.command, work.env, work.cwd, work.priority, work.grants, work.kind,
        None if work.input is None else hashlib.sha256(work.input).hexdigest(), *work.correlate,
    ]  # fmt: skip
    return _digest(content)


def input_digest(work_id: WorkId, body: bytes) -> str:
    """Equal for the same input of the same Work."""
    return _digest(["input", work_id, hashlib.sha256(body).hexdigest()])


def event_digest(event_type: str, correlate: str | None, data: str) -> str:
    """Equal for the same event. `data`: a JSON value as text."""
    return _digest(["event", event_type, correlate, hashlib.sha256(data.encode()).hexdigest()])


def _digest(content: Sequence[object]) -> str:
    return hashlib.sha256(json.dumps(content, separators=(",", ":")).encode()).hexdigest()
