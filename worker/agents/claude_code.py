"""Claude Code's streaming JSON as the messages of an agent. Pure. Rule: docs/agent-protocol.md, "Claude Code".

Read from `claude -p --output-format stream-json --input-format stream-json --verbose`, as public pages and issues describe versions
2.0 to 2.1 of it. Each line is understood by itself, so whoever takes the attempt over goes on with the next one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal

from shared.model.declaration import SUMMARY_CHARS_MAX, Declaration, declaration_of
from shared.model.usage import Usage, usage_of
from worker.agents.messages import NOTHING, Heard

NO_END = frozenset(
    {
        *("system", "assistant", "user", "stream_event", "control_request", "control_response"),
        *("tool_progress", "tool_use_summary", "auth_status", "prompt_suggestion"),
    }
)
"""Types that say nothing about how it ends; they stay in the output."""

_TRY_LATER = re.compile(r"\b(429|500|502|503|504|529)\b|overloaded|rate.?limit|temporarily", re.IGNORECASE)
_LIMIT_REACHED = re.compile(r"limit reached(?:\|(\d{10,13}))?|hit your .*limit", re.IGNORECASE)
_MS_FROM = 10**11
"""A time since 1970 above this is in milliseconds; pages differ on which it is."""
_TOKENS = ("input_tokens", "output_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")


def understand(message: Mapping[str, object], key: str) -> Heard:
    """See `worker.agents.messages.Language`."""
    kind = str(message["type"])
    if kind in NO_END:
        return _request(message) if kind == "control_request" else NOTHING
    if kind == "rate_limit_event":
        return Heard(declarations=_rejected(message, key))
    if kind == "result":
        return Heard(declarations=(*_turn(message, key), *_outcome(message, key)), usage=_usage(message))
    return Heard(unknown=kind)


def _request(message: Mapping[str, object]) -> Heard:
    """A request that waits for an answer, which nobody can give: its input has ended. It is counted, for a person to see."""
    request = message.get("request")
    subtype = request.get("subtype") if isinstance(request, dict) else None
    return Heard(unknown=f"control_request {subtype}") if subtype == "can_use_tool" else NOTHING


def user_line(texts: Sequence[str]) -> bytes:
    """All that an attempt is told, as one message: it is answered by one `result`.

    Of several messages each would have its own, and what each says was spent is the sum since the program began.
    """
    content = [{"type": "text", "text": text} for text in texts]
    message = {"type": "user", "message": {"role": "user", "content": content}}
    return json.dumps(message, separators=(",", ":")).encode() + b"\n"


def _rejected(message: Mapping[str, object], key: str) -> tuple[Declaration, ...]:
    """A limit that is reached is its outcome unless a later line says otherwise, and tells when to try again."""
    info = message.get("rate_limit_info")
    if not isinstance(info, dict) or info.get("status") != "rejected":
        return ()
    summary = f"limit reached: {str(info.get('rateLimitType') or 'rate limit')[:100]}"
    return (_failed(key, summary, _retry(info.get("resetsAt"))),)


def _outcome(message: Mapping[str, object], key: str) -> tuple[Declaration, ...]:
    text = message.get("result")
    summary = text if isinstance(text, str) else ""
    subtype = str(message.get("subtype") or "")
    if subtype == "success" and message.get("is_error") is not True:
        body = {"kind": "completed", "summary": summary[:SUMMARY_CHARS_MAX]}
        return (declaration_of(f"{key}.outcome", "outcome", body),)
    told = summary or _errors(message) or subtype or "it says that it failed"
    limit = _LIMIT_REACHED.search(told)
    if limit is not None:
        # Without a time in it: the event that came before has told the outcome, and when to try again.
        return (_failed(key, told, _retry(int(limit[1]))),) if limit[1] else ()
    return (_failed(key, told, {"unknown": True} if _TRY_LATER.search(told) else None),)


def _errors(message: Mapping[str, object]) -> str:
    errors = message.get("errors")
    return "; ".join(map(str, errors[:5])) if isinstance(errors, list) else ""


def _failed(key: str, summary: str, retry: Mapping[str, object] | None) -> Declaration:
    body: dict[str, object] = {"kind": "failed", "summary": summary[:SUMMARY_CHARS_MAX]}
    if retry is not None:
        body["retry"] = retry
    return declaration_of(f"{key}.outcome", "outcome", body)


def _retry(resets_at: object) -> Mapping[str, object]:
    if isinstance(resets_at, bool) or not isinstance(resets_at, (int, float, Decimal)) or not 0 < resets_at < 10**14:
        return {"unknown": True}
    seconds = resets_at / 1000 if resets_at > _MS_FROM else resets_at
    return {"reset_at": datetime.fromtimestamp(float(seconds), UTC).isoformat()}


def _usage(message: Mapping[str, object]) -> Usage:
    """Its cost and tokens; amounts that are none are left out, the rest counts."""
    units: dict[str, object] = {}
    cost = message.get("total_cost_usd")
    if _is_amount(cost):
        units["usd"] = cost
    usage = message.get("usage")
    if isinstance(usage, dict):
        counts = [usage[name] for name in _TOKENS if isinstance(usage.get(name), int) and _is_amount(usage[name])]
        if counts and _is_amount(sum(counts)):
            units["tokens"] = sum(counts)
    return usage_of(units)


def _is_amount(value: object) -> bool:
    return isinstance(value, (int, float, Decimal)) and not isinstance(value, bool) and 0 <= value < 10**12


def _turn(message: Mapping[str, object], key: str) -> tuple[Declaration, ...]:
    """What it was not allowed to do is told as a turn, for a person to see."""
    denials = message.get("permission_denials")
    names = [str(one.get("tool_name")) for one in denials if isinstance(one, dict)] if isinstance(denials, list) else []
    if names:
        comment = f"not allowed to use {', '.join(dict.fromkeys(names))}"[:1000]
        return (_told(key, "permission-denied", comment),)
    worked = message.get("subtype") == "success" and message.get("is_error") is not True
    return (_told(key, "completed" if worked else "failed", ""),)


def _told(key: str, status: str, comment: str) -> Declaration:
    return declaration_of(f"{key}.turn", "turn", {"status": status, "comment": comment})
