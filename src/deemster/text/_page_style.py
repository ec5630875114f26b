"""The style sheet of all pages: light, dark, printed, and on a narrow screen.

The colours are those of the viewer, which colour-blind readers tell apart: green is good, orange is bad, blue is
neither. A status is always a word, too.
"""

from __future__ import annotations

# The lower a rate, the more orange; the higher a share, the more blue.
_SHADES = "\n".join(
    [
        f".{kind}-{step} {{ background: rgb(var(--{colour}) / {strength:.2f}); }}"
        for step in range(11)
        for kind, colour, strength in (
            ("rate", "low", (10 - step) / 14),
            ("share", "high", step / 20),
        )
        if strength
    ]
)
STYLE = f"""
:root {{ color-scheme: light dark; --page: #fff; --text: #1f2328; --dim: #57606a; --line: #d0d7de; --soft: #f6f8fa;
  --link: #2456cc; --pass: #006b56; --fail: #ab3d06; --unsure: #765800; --low: 232 135 58; --high: 36 86 204;
  --ink: #2456cc; }}
@media (prefers-color-scheme: dark) {{ :root {{ --page: #0d1117; --text: #e6edf3; --dim: #9da7b1; --line: #3d444d;
  --soft: #161b22; --link: #8fb4ff; --pass: #4fc9a6; --fail: #ff9d6b; --unsure: #e6b64a; --low: 180 92 31;
  --high: 143 180 255; --ink: #8fb4ff; }} }}
* {{ box-sizing: border-box; }}
html {{ scroll-behavior: smooth; }}
body {{ font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; color: var(--text);
  background: var(--page); max-width: 72rem; margin: 0 auto; padding: 1.5rem 1rem 4rem; overflow-wrap: break-word; }}
h1 {{ font-size: 1.5rem; line-height: 1.3; margin: 0 0 .5rem; }}
h2 {{ font-size: 1.15rem; margin: 0 0 .5rem; }}
p {{ margin: .4rem 0; }}
a {{ color: var(--link); }}
.head {{ border: 1px solid var(--line); border-left: .5rem solid var(--dim); border-radius: .5rem; padding: 1.25rem;
  background: var(--soft); }}
.head.pass {{ border-left-color: var(--pass); }} .head.fail {{ border-left-color: var(--fail); }}
.head.inconclusive {{ border-left-color: var(--unsure); }}
.head h2 {{ margin-top: 1.25rem; font-size: 1rem; }}
.head ul {{ margin: 0; padding-left: 1.25rem; }}
.verdict {{ font-size: 1.2rem; font-weight: 600; }}
.pass .verdict, td.pass {{ color: var(--pass); }} .fail .verdict, td.fail {{ color: var(--fail); font-weight: 600; }}
.inconclusive .verdict, td.inconclusive {{ color: var(--unsure); }} td.skipped {{ color: var(--dim); }}
td.pass::before {{ content: "✓ " / ""; }} td.fail::before {{ content: "✕ " / ""; }}
td.inconclusive::before {{ content: "? " / ""; }}
.warning {{ border-left: .25rem solid var(--unsure); padding-left: .75rem; font-weight: 600; }}
.fact, footer, figcaption {{ color: var(--dim); font-size: .9rem; }}
.tiles {{ display: grid; grid-template-columns: repeat(auto-fit, minmax(10.5rem, 1fr)); gap: .75rem;
  margin: 1rem 0 0; }}
.tiles div {{ background: var(--page); border: 1px solid var(--line); border-radius: .5rem; padding: .6rem .8rem; }}
.tiles dt {{ color: var(--dim); font-size: .85rem; }}
.tiles dd {{ margin: 0; font-size: 1.5rem; font-weight: 600; line-height: 1.35; font-variant-numeric: tabular-nums; }}
.tiles dd.about {{ font-size: .85rem; font-weight: 400; color: var(--dim); }}
nav ul {{ list-style: none; display: flex; flex-wrap: wrap; gap: .25rem 1rem; padding: 0; margin: 1rem 0 0;
  font-size: .9rem; }}
section {{ border-top: 1px solid var(--line); margin-top: 1.75rem; padding-top: 1.25rem; }}
.scroll {{ overflow-x: auto; margin: .5rem 0; }}
.long {{ max-height: 36rem; overflow-y: auto; }}
.long thead th {{ position: sticky; top: 0; background: var(--page); z-index: 2; }}
table {{ border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: .92rem; }}
th, td {{ text-align: left; padding: .3rem .7rem; border-bottom: 1px solid var(--line); white-space: nowrap;
  vertical-align: middle; }}
th:first-child, td:first-child {{ padding-left: 0; }}
thead th {{ color: var(--dim); font-weight: 500; vertical-align: bottom; white-space: normal; }}
tbody th {{ font-weight: 500; min-width: 5rem; max-width: 20rem; white-space: normal; overflow-wrap: anywhere; }}
tbody th.short {{ white-space: nowrap; }}
tbody th:first-child {{ position: sticky; left: 0; background: var(--page); z-index: 1; }}
.number {{ text-align: right; }}
td.text, td.sentence {{ white-space: normal; overflow-wrap: anywhere; min-width: 10rem; }}
td.sentence {{ min-width: 16rem; }}
th.plot, td.plot {{ min-width: 12rem; width: 18rem; padding-left: 1rem; padding-right: 1rem; }}
code {{ font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; font-size: .92em; }}
th code, .warning code, dt code, dd code, td.text code {{ font-family: inherit; font-size: inherit; }}
details {{ border-bottom: 1px solid var(--line); padding: .35rem 0; }}
summary {{ cursor: pointer; overflow-wrap: anywhere; }}
details dl {{ display: grid; grid-template-columns: minmax(5rem, max-content) 1fr; gap: .3rem .9rem;
  margin: .5rem 0 .75rem 1rem; }}
details dt {{ color: var(--dim); }} details dd {{ margin: 0; overflow-wrap: anywhere; }}
del {{ text-decoration: line-through; color: var(--dim); }} ins {{ text-decoration: none; }}
del code {{ background: var(--soft); }} ins code {{ background: rgb(var(--high) / .18); }}
.figures {{ display: flex; flex-wrap: wrap; gap: 0 2rem; }}
figure {{ margin: 1rem 0; flex: 1 1 min(100%, 26rem); min-width: 0; }}
figure.square {{ flex: 0 1 28rem; }} figure.matrix {{ flex: 0 1 auto; max-width: 100%; }}
summary .fact {{ margin-left: .5rem; }}
figure details {{ border: 0; font-size: .9rem; }}
svg {{ display: block; width: 100%; overflow: visible; }}
h1 svg {{ display: inline-block; width: 1.5rem; height: 1.5rem; vertical-align: -.3rem; margin-right: .5rem; }}
svg text {{ font: 12px system-ui, sans-serif; fill: var(--dim); }}
.grid {{ stroke: var(--line); stroke-opacity: 1; }} .axis, .zero {{ stroke: var(--dim); }}
.margin {{ stroke: var(--unsure); stroke-width: 2; stroke-dasharray: 4 3; }}
.bar {{ stroke-width: 2; }} .block, .plain, .same, .point, .trend, .dot {{ color: var(--ink); }}
.point {{ fill-opacity: .45; }} .trend {{ stroke-width: 2; }} .band {{ color: var(--dim); fill-opacity: .18; }}
.better, .better * {{ color: var(--pass); }} .worse, .worse * {{ color: var(--fail); }}
.outside {{ color: var(--fail); }}
{_SHADES}
footer {{ margin-top: 3rem; }}
:focus-visible {{ outline: 3px solid var(--link); outline-offset: 2px; }}
@media (max-width: 40rem) {{
  body {{ padding: .75rem .75rem 3rem; font-size: 15px; }} .head {{ padding: .9rem; }}
  h1 {{ font-size: 1.25rem; }} .verdict {{ font-size: 1.05rem; }}
  .tiles {{ grid-template-columns: 1fr 1fr; gap: .5rem; }} .tiles dd {{ font-size: 1.2rem; }}
  th, td {{ padding: .3rem .5rem; }}
  tbody th, tbody th.short {{ max-width: 9rem; min-width: 7rem; white-space: normal; }}
  th.plot, td.plot {{ min-width: 9.5rem; width: 9.5rem; }}
  details dl {{ grid-template-columns: 1fr; margin-left: 0; gap: .1rem; }} details dd {{ margin-bottom: .4rem; }}
}}
@media (prefers-reduced-motion: reduce) {{ html {{ scroll-behavior: auto; }} }}
@page {{ margin: 1.5cm; }}
@media print {{
  :root {{ color-scheme: light; --page: #fff; --text: #000; --dim: #444; --line: #bbb; --soft: #fff; --link: #000;
    --pass: #006b56; --fail: #ab3d06; --unsure: #765800; --ink: #2456cc; --low: 232 135 58; --high: 36 86 204; }}
  body {{ font-size: 10pt; max-width: none; padding: 0; }} nav {{ display: none; }}
  * {{ print-color-adjust: exact; -webkit-print-color-adjust: exact; }}
  .scroll {{ overflow: visible; max-height: none; }} table {{ font-size: 8.5pt; }}
  th, td {{ padding: .15rem .35rem; white-space: normal; }}
  .number {{ white-space: nowrap; }} th.plot, td.plot {{ min-width: 6rem; width: 9rem; }}
  tbody th {{ position: static; }}
  h2, summary, figcaption {{ break-after: avoid; }} tr, figure, .tiles div {{ break-inside: avoid; }}
  details::details-content {{ content-visibility: visible; display: block; }}
}}
"""
