"""Measure how the project writes; print the worst places.

    python tests/docs/style.py                 the 50 worst places
    python tests/docs/style.py --worst 200 --under python/samegrad/math
    python tests/docs/style.py --counts        every measure beside its ceiling
    python tests/docs/style.py --lower         write lower counts into the ceiling file

`test_style.py` fails where a count is above its ceiling in `style_ceiling.json`.
"""

from __future__ import annotations

import argparse
import collections
import dataclasses
import json
import pathlib
import re
from collections.abc import Iterator

from prose import ROOT, Text, sentences, texts
from public_names import PublicName, public_names
from vocabulary import REFUSED, REPORTED, is_clause, is_verb

CEILING = pathlib.Path(__file__).with_name("style_ceiling.json")
LONGEST = 30  # words of a sentence
AREAS = {
    "python": ("python/samegrad", "python/samegrad_doctor/src"),
    "tests": ("tests", ".ci", "python/samegrad_doctor/tests"),
    "cpp": ("cpp",),
    "markdown": (
        *(f"{name}.md" for name in ("README", "CHANGELOG", "CODE_OF_CONDUCT", "CONTRIBUTING")),
        *("SECURITY.md", ".github", "docs", "cpp", "python", "tests"),
    ),
    "notebooks": ("notebooks",),
}


@dataclasses.dataclass(frozen=True)
class Place:
    """A place that the rules would write otherwise; `weight` orders the printed list."""

    measure: str
    path: str
    line: int
    reason: str
    weight: int

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.reason}"


def area_texts(area: str) -> Iterator[Text]:
    """Yield the prose of an area; Markdown has an area of its own."""
    for text in texts(*(folder for folder in AREAS[area] if (ROOT / folder).exists())):
        own = not text.path.startswith("tests/docs/")  # its samples
        if own and (text.kind == "markdown") == (area == "markdown" or area == "notebooks"):
            yield text


def refused_places() -> Iterator[Place]:
    """Yield every refused phrase of Python, C++, Markdown and notebooks."""
    patterns = [(re.compile(pattern), term) for pattern, term in REFUSED.items()]
    for area in AREAS:
        for text in area_texts(area):
            flat = " ".join(text.text.split())
            for pattern, term in patterns:
                for found in pattern.finditer(flat):
                    near = flat[max(0, found.start() - 30) : found.end() + 30]
                    yield Place(
                        f"refused phrases, {area}",
                        text.path,
                        text.line,
                        f"{found[0]!r} -> {term}: ...{near}...",
                        3,
                    )


def docstring_places() -> Iterator[Place]:
    """Yield docstrings that begin with a clause, in the package and its C++ headers."""
    for text in area_texts("python"):
        first = text.text.split()[0] if text.text.split() else ""
        if text.kind == "docstring" and is_clause(first):
            yield Place(
                "docstrings that begin with a clause", text.path, text.line, f"begins {first!r}", 2
            )
    for text in area_texts("cpp"):
        if text.kind == "comment" and is_clause(text.text.split()[0] if text.text else ""):
            yield Place(
                "C++ comments that begin with a clause",
                text.path,
                text.line,
                f"begins {text.text.split()[0]!r}",
                1,
            )


def public_places() -> Iterator[Place]:
    """Yield public names whose docstring lacks a verb, Args or Returns."""
    for public in public_names():
        for measure, reason in _lacks(public):
            path = public.path.split("samegrad/", 1)[-1]
            yield Place(
                measure, f"python/samegrad/{path}", public.line, f"{public.name}: {reason}", 5
            )


def _lacks(public: PublicName) -> Iterator[tuple[str, str]]:
    docstring = public.docstring
    first = docstring.split()[0] if docstring else ""
    if not docstring:
        yield "public names without a docstring", "has no docstring"
    if public.kind in ("function", "method") and not is_verb(first):
        yield "public functions without a verb first", f"begins {first!r}, not with a verb"
    if is_clause(first):
        yield "public docstrings that begin with a clause", f"begins {first!r}"
    unnamed = [name for name in public.parameters if not re.search(rf"\b{name}\b", docstring)]
    if public.parameters and ("Args:" not in docstring or unnamed):
        yield "public functions without Args", f"Args lack {', '.join(unnamed) or 'a section'}"
    if public.parameters and public.returns_a_value and not _tells_result(docstring):
        yield "public functions without Returns", "has no Returns"


def _tells_result(docstring: str) -> bool:
    return "Returns:" in docstring or "Yields:" in docstring


def sentence_places() -> Iterator[Place]:
    """Yield sentences of Markdown and notebooks with more than 30 words."""
    for text in [*area_texts("markdown"), *area_texts("notebooks")]:
        if text.kind != "markdown":
            continue
        for sentence in sentences(text.text):
            if (count := len(sentence.split())) > LONGEST:
                reason = f"{count} words: {sentence[:60]}..."
                yield Place("Markdown sentences over 30 words", text.path, text.line, reason, 4)


def words_per_sentence() -> dict[str, tuple[float, float]]:
    """Return each Markdown file's words per sentence and share of sentences over 30 words."""
    counts: dict[str, list[int]] = collections.defaultdict(list)
    for text in [*area_texts("markdown"), *area_texts("notebooks")]:
        if text.kind == "markdown":
            counts[text.path] += [len(sentence.split()) for sentence in sentences(text.text)]
    return {
        path: (sum(words) / len(words), sum(count > LONGEST for count in words) / len(words))
        for path, words in sorted(counts.items())
        if words
    }


def places() -> list[Place]:
    """Return all places, the gravest first."""
    found = [*public_places(), *docstring_places(), *refused_places(), *sentence_places()]
    return sorted(found, key=lambda place: (-place.weight, place.path, place.line))


def counts(found: list[Place]) -> dict[str, int]:
    """Return the number of places of each measure."""
    return dict(sorted(collections.Counter(place.measure for place in found).items()))


def public_shares() -> dict[str, float]:
    """Return the shares of public docstrings that follow the rules, from 0 to 1."""
    names = public_names()
    functions = [public for public in names if public.parameters]
    lacking = collections.Counter(measure for public in names for measure, _ in _lacks(public))
    verbs = sum(is_verb((public.docstring.split() or [""])[0]) for public in names)
    results = sum(public.returns_a_value for public in functions)
    return {
        "verb first": verbs / len(names),
        "clause first": lacking["public docstrings that begin with a clause"] / len(names),
        "Args": 1 - lacking["public functions without Args"] / len(functions),
        "Returns": 1 - lacking["public functions without Returns"] / results,
    }


def reported() -> dict[str, int]:
    """Return how often words with lawful uses occur in the package's prose."""
    words = [" ".join(text.text.split()) for text in area_texts("python")]
    return {
        term: sum(len(re.findall(pattern, text)) for text in words)
        for pattern, term in REPORTED.items()
    }


def main() -> None:
    """Print the worst places, or every count."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--worst", type=int, default=50, help="how many places to print")
    parser.add_argument("--under", default="", help="only places whose path begins so")
    parser.add_argument("--counts", action="store_true", help="print the counts")
    parser.add_argument("--lower", action="store_true", help="lower the ceiling to today's counts")
    options = parser.parse_args()
    found = places()
    if options.lower:
        ceiling = json.loads(CEILING.read_text()) if CEILING.exists() else {}
        now = counts(found)
        lowered = {name: min(now[name], ceiling.get(name, now[name])) for name in now}
        CEILING.write_text(json.dumps(lowered, indent=2) + "\n")
    if options.counts:
        ceiling = json.loads(CEILING.read_text())
        for name, count in counts(found).items():
            print(f"{count:6} (ceiling {ceiling.get(name, 0):6})  {name}")
        for name, share in public_shares().items():
            print(f"{share:6.1%}  public docstrings: {name}")
        for path, (mean, long) in words_per_sentence().items():
            print(f"{mean:6.1f} words a sentence, {long:5.1%} over {LONGEST}  {path}")
        for term, count in reported().items():
            print(f"{count:6} reported, not refused: should be {term}")
        return
    for place in [place for place in found if place.path.startswith(options.under)][
        : options.worst
    ]:
        print(place)


if __name__ == "__main__":
    main()
