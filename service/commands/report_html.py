"""The report as one page of HTML that needs nothing else: no script, no font, no picture from elsewhere."""

from collections.abc import Iterator
from html import escape
from typing import Final

from crds.base import rfc3339
from service.fleet.usage import MachineUse, Totals, UsageReport, hours_of

STYLE: Final = """
:root { --ink: #1c2430; --soft: #5b6676; --line: #d9dee6; --served: #0b6e4f; --used: #e0a030; --free: #e8ecf1; }
@page { size: A4; margin: 16mm 14mm; }
* { box-sizing: border-box; }
body { font: 14px/1.45 system-ui, sans-serif; color: var(--ink); background: #fff; margin: 2rem auto; max-width: 60rem;
  padding: 0 1rem; }
h1 { font-size: 1.5rem; margin: 0; } h2 { font-size: 1.05rem; margin: 2rem 0 .5rem; }
p.when, .soft { color: var(--soft); margin: .2rem 0 1.2rem; }
dl.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(9.5rem, 1fr)); gap: .7rem; margin: 0; }
dl.tiles div { border: 1px solid var(--line); border-radius: 6px; padding: .6rem .8rem; break-inside: avoid; }
dt { color: var(--soft); font-size: .8rem; } dd { margin: 0; font-size: 1.25rem; font-weight: 600; }
dd small { display: block; font-size: .8rem; font-weight: 400; color: var(--soft); }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { text-align: right; padding: .3rem .5rem; border-bottom: 1px solid var(--line); }
th { color: var(--soft); font-weight: 600; font-size: .8rem; }
th.text, td.text { text-align: left; overflow-wrap: anywhere; }
thead { display: table-header-group; } tr { break-inside: avoid; }
svg { display: block; width: 100%; height: .7rem; min-width: 6rem; }
.key { display: inline-block; width: .7rem; height: .7rem; border-radius: 2px; margin: 0 .3rem 0 .9rem; }
.key:first-child { margin-left: 0; }
@media screen and (max-width: 36rem) { body { margin: 1rem auto; }
  .bar { display: none; } th, td { padding: .3rem .15rem; } }
@media print { body { margin: 0; max-width: none; padding: 0; font-size: 10pt; }
  * { -webkit-print-color-adjust: exact; print-color-adjust: exact; } }
"""


def page(report: UsageReport) -> str:
    """The whole page."""
    since, until = report.period.since, report.period.until
    body = "\n".join(_body(report))
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Machines on schedule, {since:%Y-%m-%d} to {until:%Y-%m-%d}</title>
<style>{STYLE}</style>
</head>
<body>
<h1>Machines on schedule</h1>
<p class="when"><time datetime="{rfc3339(since)}">{since:%d %B %Y, %H:%M}</time> to
<time datetime="{rfc3339(until)}">{until:%d %B %Y, %H:%M}</time> UTC</p>
{body}
</body>
</html>
"""


def _body(report: UsageReport) -> Iterator[str]:
    yield f'<dl class="tiles">{"".join(_tiles(report.totals))}</dl>'
    if report.totals.to_ready:
        yield "<h2>Time to Ready</h2>"
        yield _to_ready(report.totals)
    if report.machines:
        yield "<h2>Machines</h2>"
        yield _legend()
        yield _machines(report)
    for note in report.notes:
        yield f'<p class="soft">{escape(note)}</p>'


def _tiles(totals: Totals) -> Iterator[str]:
    yield _tile("Machines", f"{totals.machines:,}")
    yield _tile("Served", f"{totals.served:,.0f} h", _share(totals.served, totals.hours))
    yield _tile("Hosts free", f"{totals.free:,.0f} h", _share(totals.free, totals.hours))
    yield _tile("Ready within a minute", _share(totals.punctual, totals.due), f"{totals.punctual} of {totals.due}")
    yield _tile("Drains cut short", f"{totals.cut_short:,}")
    yield _tile("Reclaims", f"{totals.reclaims:,}")
    yield _tile("Overrides", f"{totals.overrides:,}")
    if totals.cost is not None:
        yield _tile("Cost in use", f"{totals.cost:,.2f}")
        yield _tile("Saved", f"{totals.saved:,.2f}", "against always on")


def _tile(name: str, value: str, more: str = "") -> str:
    small = f" <small>{escape(more)}</small>" if more else ""
    return f"<div><dt>{escape(name)}</dt><dd>{escape(value)}{small}</dd></div>"


def _share(part: float, whole: float) -> str:
    return f"{100 * part / whole:.1f} %" if whole else "none"


def _to_ready(totals: Totals) -> str:
    rows = "".join(
        f'<tr><td class="text">{escape(kind)}</td><td>{each.count:,}</td><td>{each.p50:g} s</td>'
        f"<td>{each.p90:g} s</td><td>{each.p99:g} s</td></tr>"
        for kind, each in totals.to_ready.items()
    )
    head = '<th class="text">Kind</th><th>Services</th><th>Half within</th><th>90 % within</th><th>99 % within</th>'
    return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"


def _legend() -> str:
    keys = {"served": "served", "used": "joining or leaving", "free": "host free"}
    marks = "".join(f'<span class="key" style="background:var(--{name})"></span>{text}' for name, text in keys.items())
    return f'<p class="soft">{marks}</p>'


def _machines(report: UsageReport) -> str:
    costs = report.totals.cost is not None
    head = '<th class="text">Machine</th><th class="text bar">Use</th><th>Served</th><th>Free</th><th>Punctual</th>'
    head += "<th>Cut short</th>" + ("<th>Saved</th>" if costs else "")
    rows = "".join(_row(each, costs=costs) for each in report.machines)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"


def _row(each: MachineUse, *, costs: bool) -> str:
    name = f"{escape(each.namespace)}/<b>{escape(each.name)}</b>"
    saved = f"<td>{each.saved:,.2f}</td>" if each.saved is not None else "<td></td>"
    return (
        f'<tr><td class="text">{name}</td><td class="text bar">{_bar(each)}</td>'
        f"<td>{hours_of(each.served):,.1f} h</td><td>{hours_of(each.free):,.1f} h</td>"
        f"<td>{each.punctual}/{each.due}</td><td>{each.cut_short}</td>{saved if costs else ''}</tr>"
    )


def _bar(each: MachineUse) -> str:
    """Served, joining or leaving, and free, as parts of the time that is known."""
    whole = max(hours_of(each.hours), 0.01)
    served, used = (100 * hours_of(span) / whole for span in (each.served, each.in_use))
    label = f"{served:.0f} % served, {100 - used:.0f} % free"
    return (
        f'<svg viewBox="0 0 100 10" preserveAspectRatio="none" role="img" aria-label="{label}">'
        '<rect width="100" height="10" fill="var(--free)"/>'
        f'<rect width="{used:.2f}" height="10" fill="var(--used)"/>'
        f'<rect width="{served:.2f}" height="10" fill="var(--served)"/></svg>'
    )
