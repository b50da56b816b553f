"""The diagnosis as a page of HTML that needs no other file."""

from __future__ import annotations

from html import escape
from typing import Any

from samegrad_doctor._words import WHERE, symbols_of

_STYLE = """
:root { color-scheme: light dark; --bad: #b3261e; --good: #1a7f37; --line: #8886; --bar: #4c8bf5; }
@media (prefers-color-scheme: dark) { :root { --bad: #ff8a80; --good: #6fdd8b; } }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 52rem; margin: 2rem auto; padding: 0 1rem; }
h1.wrong { color: var(--bad); } h1.correct { color: var(--good); }
table { border-collapse: collapse; } td, th { padding: .2rem .8rem; text-align: right; }
th { border-bottom: 1px solid var(--line); } .bar { text-align: left; width: 14rem; }
.bar span { display: block; height: .8rem; background: var(--bar); }
pre { overflow-x: auto; border: 1px solid var(--line); padding: .6rem; }
.minus { color: var(--bad); } .plus { color: var(--good); } dt { font-weight: 600; }
"""


def page_of(content: dict[str, Any]) -> str:
    """Return a document with the fields of a diagnosis.

    Args:
        content: The fields, as `Diagnosis.content` returns them.
    """
    right = content["correct"] and not content["reported_loss_issue"]
    word, verdict = ("correct", "The step is correct") if right else ("wrong", "The step is wrong")
    body = [f'<h1 class="{word}">{verdict}</h1>', f"<p>{escape(content['summary'])}</p>"]
    if content["per_replica"] and not content["correct"]:
        body += [_table(content["per_replica"]), f"<p>Here {escape(WHERE)}.</p>"]
    entries = []
    if content["cause"]:
        formula = content["formula"]
        entries += [
            ("Cause", f"{content['cause']}: {content['sentence']}."),
            ("Maths", formula + (f"  ({known})" if (known := symbols_of(formula)) else "")),
            ("Fix", content["fix"]),
        ]
    issue = content["reported_loss_issue"]
    entries += [("Reported loss", f"{issue}.")] if issue else []
    entries += [("It may also be", name) for name in content["alternatives"]]
    entries += [("Warning", name) for name in content["warnings"]]
    entries += [("Note", note) for note in content["notes"]]
    pairs = "".join(f"<dt>{term}</dt><dd>{escape(text)}</dd>" for term, text in entries)
    body.append(f"<dl>{pairs}</dl>")
    if content["patch"]:
        body.append(f"<h2>In your file</h2><pre>{_patch(content['patch'])}</pre>")
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>samegrad-doctor: '
        f"{word}</title><style>{_STYLE}</style></head>\n<body>\n" + "\n".join(body) +
        "\n</body></html>\n"
    )  # fmt: skip


def _table(rows: list[dict[str, Any]]) -> str:
    one = "replica" if rows[0]["micro_batch"] is None else "micro_batch"
    head = "".join(f"<th>{name}</th>" for name in
                   (one.replace("_", "-"), "examples", "expected", "found", "factor"))  # fmt: skip
    most = max([abs(row["factor"] or 0.0) for row in rows] + [1.0])
    lines = []
    for row in rows:
        factor = row["factor"]
        cells = [row[one], row["examples"], f"{row['expected']:.6f}", f"{row['found']:.6f}",
                 "" if factor is None else f"{factor:.4g}"]  # fmt: skip
        width = 100 * min(1.0, abs(factor or 0.0) / most)
        bar = f'<td class="bar"><span style="width:{width:.1f}%"></span></td>'
        lines.append("<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + bar + "</tr>")
    return f"<table><tr>{head}<th></th></tr>{''.join(lines)}</table>"


def _patch(text: str) -> str:
    kinds = {"-": "minus", "+": "plus"}
    return "\n".join(
        f'<span class="{kinds[line[0]]}">{escape(line)}</span>' if line[:1] in kinds else
        escape(line) for line in text.splitlines()
    )  # fmt: skip


__all__ = ["page_of"]
