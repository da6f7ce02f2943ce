"""One page out of one or several results: self-contained HTML without a script, and nothing in it is asked for from elsewhere.

The page forbids itself scripts and requests, so that even text that got past the escaping could do nothing. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence

from chaos.report import matrix, numbers, timeline
from chaos.report.style import STYLE
from chaos.report.text import number, safe, several, took
from chaos.report.verdict import Finding, Tone, Verdict, findings, verdict
from chaos.results import Host, Result

FINDINGS_MAX = 200
_SYMBOLS = {Tone.GOOD: "✓", Tone.BAD: "✕", Tone.OPEN: "–"}
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"


def page(results: Sequence[Result]) -> str:
    """The page. Results are shown in the order given."""
    whole = verdict(results)
    names = [f"r{index}" for index, _ in enumerate(results)]
    same_host = len({(result.host, result.version) for result in results}) == 1
    sections = "".join(
        _section(result, name, with_host=not same_host) for result, name in zip(results, names, strict=True)
    )
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1"><meta name="color-scheme" content="light dark">'
        f"<title>{safe(f'{_SYMBOLS[whole.tone]} {whole.line}')} – tenure drill</title><style>{STYLE}</style></head><body><main>"
        f"{_header(results, whole, with_host=same_host)}{_contents(results, names)}{sections}"
        "</main></body></html>\n"
    )


def _header(results: Sequence[Result], whole: Verdict, *, with_host: bool) -> str:
    drills = ", ".join(dict.fromkeys(result.drill for result in results))
    host = _host(results[0].host, results[0].version) if with_host else ""
    return (
        f'<header class="{whole.tone}"><p class="over">tenure drill {safe(drills)}</p>'
        f"<h1><span>{_SYMBOLS[whole.tone]}</span> {safe(whole.line)}</h1>{host}</header>"
    )


def _contents(results: Sequence[Result], names: Sequence[str]) -> str:
    """Links to the sections, where there are several."""
    if len(results) < 2:
        return ""
    items = []
    for result, name in zip(results, names, strict=True):
        one = verdict([result])
        items.append(
            f'<li><a href="#{name}">{safe(result.drill)}</a> <span class="{one.tone}">{_SYMBOLS[one.tone]} {safe(one.line)}</span></li>'
        )
    return f'<nav aria-label="Drills"><ul>{"".join(items)}</ul></nav>'


def _section(result: Result, name: str, *, with_host: bool) -> str:
    one = verdict([result])
    seed = "" if result.seed is None else f" · seed {result.seed}"
    return (
        f'<section class="drill" id="{name}"><h2>{safe(result.drill)} <small class="{one.tone}">{_SYMBOLS[one.tone]} {safe(one.line)}</small></h2>'
        f'<p class="facts">began {safe(_moment(result.began_at))} · took {took(result.took_ms)}{seed}</p>{_host(result.host, result.version) if with_host else ""}<pre>{safe(result.command)}</pre>'
        f"{_cut_short(result)}{numbers.totals(result.totals)}{_findings(findings(result))}{matrix.matrix(result.cells, name)}"
        f"{numbers.figures(result.figures)}{numbers.guards(result.guards)}{timeline.stories(result.stories)}{numbers.coverage(result.coverage)}"
        "</section>"
    )


def _moment(iso: str) -> str:
    """To the second, for people."""
    return f"{iso.partition('.')[0].removesuffix('Z').replace('T', ' ')} UTC"


def _cut_short(result: Result) -> str:
    return (
        f'<p class="note open">Cut short: {safe(result.cut_short)}. What follows is what there was until then.</p>'
        if result.cut_short
        else ""
    )


def _findings(found: Sequence[Finding]) -> str:
    if not found:
        return ""
    items = "".join(
        f'<li><b>{safe(each.check)}</b> <span class="faint">{safe(each.where)}</span><p>{safe(each.said)}</p><pre>{safe(each.replay)}</pre></li>'
        for each in found[:FINDINGS_MAX]
    )
    rest = len(found) - FINDINGS_MAX
    more = f"<p>and {number(rest)} more in the result’s file</p>" if rest > 0 else ""
    return f'<section class="block"><h3>Found</h3><ul class="findings">{items}</ul>{more}</section>'


def _host(host: Host, version: str) -> str:
    facts = [
        f"tenure {version}",
        f"Linux {host.kernel} {host.machine}",
        f"{several(host.cpus, 'CPU')}",
        f"Python {host.python}",
        f"SQLite {host.sqlite}",
        f"uid {host.uid}",
    ]
    able = {
        "cgroup for each job": host.cgroup,
        "exit status of others’ children": host.pidfd_exit,
        "strace": host.strace,
        "sandbox": host.bubblewrap,
    }
    there = "".join(
        f"<li>{'✓' if has else '–'} {safe(name)}<small> {'' if has else 'not here'}</small></li>"
        for name, has in able.items()
    )
    return f'<p class="facts">{safe(" · ".join(facts))}</p><ul class="able">{there}</ul>'
