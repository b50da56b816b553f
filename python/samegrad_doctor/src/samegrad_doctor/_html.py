"""The diagnosis as a page of HTML that needs no other file."""

from __future__ import annotations

from html import escape

_STYLE = """
:root { color-scheme: light dark; --bad: #b3261e; --good: #1a7f37; --line: #8886; }
@media (prefers-color-scheme: dark) { :root { --bad: #ff8a80; --good: #6fdd8b; } }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 52rem; margin: 2rem auto; padding: 0 1rem; }
h1.wrong, .minus { color: var(--bad); } h1.correct, .plus { color: var(--good); }
table { border-collapse: collapse; } td, th { padding: .2rem .8rem; text-align: right; }
th { border-bottom: 1px solid var(--line); } dt { font-weight: 600; }
pre { overflow-x: auto; border: 1px solid var(--line); padding: .6rem; }
"""
_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>samegrad-doctor: {word}</title>
<style>{style}</style></head>
<body><h1 class="{word}">The step is {word}</h1><p>{summary}</p>
<table>{table}</table>
<dl>{entries}</dl></body></html>
"""


def page_of(word: str, summary: str, table: list[list[str]], entries: list[tuple[str, str]]) -> str:
    """Return a document with the parts of a diagnosis.

    Args:
        word: "correct" or "wrong".
        summary: The first line of the report.
        table: The cells of each line of the table, its head first.
        entries: Labels and texts.
    """
    lines: list[str] = []
    for line in table:
        tag = "td" if lines else "th"
        cells = "".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in line)
        lines.append(f"<tr>{cells}</tr>")
    told = [
        f"<dt>{label}</dt><dd>{_diff(text) if label == 'diff' else escape(text)}</dd>"
        for label, text in entries
    ]
    return _PAGE.format(
        word=word, style=_STYLE, summary=escape(summary), table="\n".join(lines),
        entries="\n".join(told),
    )  # fmt: skip


def _diff(text: str) -> str:
    kinds = {"-": "minus", "+": "plus"}
    lines = (
        f'<span class="{kinds.get(line[:1], "")}">{escape(line)}</span>'
        for line in text.splitlines()
    )
    return "<pre>" + "\n".join(lines) + "</pre>"
