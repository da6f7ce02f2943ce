"""What was counted and measured: totals, figures, coverage, guards. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from chaos.report.text import number, safe, several
from chaos.results import Coverage, Figure, Guard


def totals(found: dict[str, float]) -> str:
    """Counts, largest type first to the eye; nothing when nothing was counted."""
    if not found:
        return ""
    items = "".join(f"<div><dt>{safe(name)}</dt><dd>{number(value)}</dd></div>" for name, value in found.items())
    return f'<dl class="totals">{items}</dl>'


def figures(found: Sequence[Figure]) -> str:
    """Each series with its middle and edge; bars of one unit share a scale."""
    if not found:
        return ""
    most = {unit: max(figure.max for figure in found if figure.unit == unit) for unit in {each.unit for each in found}}
    rows = "".join(
        f'<tr><th scope="row">{safe(each.name)}</th><td class="n">{number(each.count)}</td><td class="n">{number(each.p50)}</td>'
        f'<td class="n">{number(each.p99)}</td><td class="n">{number(each.max)}</td><td>{safe(each.unit)}</td>'
        f"<td>{_spread(each, most[each.unit])}</td></tr>"
        for each in found
    )
    heads = "".join(f'<th scope="col" class="n">{name}</th>' for name in ("count", "p50", "p99", "max"))
    return (
        f'<section class="block"><h3>Figures</h3><div class="wide"><table class="plain"><thead><tr><th scope="col">measured</th>'
        f'{heads}<th scope="col">unit</th><th scope="col" class="barred">p50, p99 and max</th></tr></thead><tbody>{rows}</tbody></table></div></section>'
    )


def _spread(figure: Figure, most: float) -> str:
    """Up to p99 as a faint bar, up to p50 as a strong one, and a stroke at the most."""
    p50, p99, top = (round(100 * value / most, 2) if most > 0 else 0 for value in (figure.p50, figure.p99, figure.max))
    title = f"p50 {number(figure.p50)}, p99 {number(figure.p99)}, max {number(figure.max)} {figure.unit}"
    return (
        f'<svg class="spread" height="14" role="img" aria-label="{safe(title)}"><title>{safe(title)}</title>'
        f'<rect class="far" y="4" height="6" width="{p99:g}%"/><rect class="near" y="4" height="6" width="{p50:g}%"/>'
        f'<svg x="{top:g}%" overflow="visible"><path d="M-1 2V12"/></svg></svg>'
    )


def guards(found: Sequence[Guard]) -> str:
    """Each guard that was taken away, the check that is to notice, and after how many histories it did."""
    if not found:
        return ""
    missed = sum(guard.is_missed for guard in found)
    hunted = sum(not guard.covered for guard in found)
    line = f"{several(hunted, 'guard')} taken away, one at a time; " + (
        f"{missed} not noticed." if missed else "every time it was noticed."
    )
    return (
        f'<section class="block"><h3>Guards</h3><p>{line}</p><div class="wide"><table class="plain"><thead><tr>'
        '<th scope="col">guard</th><th scope="col">keeps from happening</th><th scope="col">noticed without it</th>'
        '<th scope="col" class="n">histories until then</th></tr></thead>'
        f"<tbody>{''.join(_guard(guard) for guard in found)}</tbody></table></div></section>"
    )


def _guard(guard: Guard) -> str:
    if guard.covered:
        noticed, seeds = f'<span class="faint">{safe(guard.covered)}</span>', '<span class="faint">– not tried</span>'
    else:
        noticed = f"<code>{safe(guard.check)}</code>"
        seeds = (
            '<b class="bad">✕ never</b>' if guard.seeds is None else f'<span class="ok">✓</span> {number(guard.seeds)}'
        )
    return (
        f'<tr><th scope="row"><code>{safe(guard.name)}</code></th><td>{safe(guard.keeps)}</td><td>{noticed}</td>'
        f'<td class="n">{seeds}</td></tr>'
    )


def coverage(found: Sequence[Coverage]) -> str:
    """How often each boundary was reached, the rarest first."""
    if not found:
        return ""
    unreached = sum(each.before == 0 or each.after == 0 for each in found)
    line = f"{several(len(found), 'boundary', 'boundaries')}, " + (
        f'<b class="open">{unreached} not reached on both sides</b>' if unreached else "each reached on both sides"
    )
    never = ", ".join(f"<code>{safe(each.boundary)}</code>" for each in found if not each.is_reached)
    told = f"<p>Never reached: {never}.</p>" if never else ""
    ordered = sorted(found, key=lambda each: (min(each.before, each.after), each.boundary))
    rows = "".join(
        f'<tr><th scope="row">{safe(each.boundary)}</th><td class="n">{_hits(each.before)}</td><td class="n">{_hits(each.after)}</td>{_struck(each)}</tr>'
        for each in ordered
    )
    return (
        f'<section class="block"><h3>Coverage</h3><details><summary>{line}</summary>{told}<table class="plain narrow"><thead><tr>'
        f'<th scope="col">boundary</th><th scope="col" class="n">before</th><th scope="col" class="n">after</th>'
        f'<th scope="col" class="n">killed</th><th scope="col" class="n">paused</th><th scope="col" class="n">failed</th></tr></thead>'
        f"<tbody>{rows}</tbody></table></details></section>"
    )


def _struck(found: Coverage) -> str:
    """What was done there, before and after."""
    before, after = found.struck_before, found.struck_after
    pairs = ((before.killed, after.killed), (before.paused, after.paused), (before.failed, after.failed))
    return "".join(
        f'<td class="n">{f"{number(one)} · {number(two)}" if one or two else "–"}</td>' for one, two in pairs
    )


def _hits(count: int) -> str:
    return number(count) if count else '<b class="open">– never</b>'
