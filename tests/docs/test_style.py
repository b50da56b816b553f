"""The project's prose keeps its rules: no measure of `style.py` rises above its ceiling."""

import json

import prose
import pytest
import style
import vocabulary


@pytest.fixture(scope="module")
def found():
    return style.places()


def test_counts_stay_at_or_below_their_ceiling(found):
    ceiling = json.loads(style.CEILING.read_text())
    worse = {
        measure: [str(place) for place in found if place.measure == measure][:50]
        for measure, count in style.counts(found).items()
        if count > ceiling.get(measure, 0)
    }
    assert not worse, json.dumps(worse, indent=1)


def test_ceiling_names_only_measures_that_still_count(found):
    stale = set(json.loads(style.CEILING.read_text())) - set(style.counts(found))
    assert not stale, f"lower them: python tests/docs/style.py --lower ({sorted(stale)})"


@pytest.mark.parametrize("kind", ["docstring", "comment", "message"])
def test_refused_phrase_is_found_in_python(tmp_path, monkeypatch, kind):
    sources = {
        "docstring": '"""Return a whole number."""\n',
        "comment": "x = 1  # a whole number\n",
        "message": 'raise ValueError(f"[op] axis must be a whole number: got {x}")\n',
    }
    assert refused(tmp_path, monkeypatch, "module.py", sources[kind]) == {kind}


@pytest.mark.parametrize(
    ("name", "source", "kind"),
    [
        ("a.cpp", "// Rows that are\n// added up here.\nint x;\n", "comment"),
        ("b.h", 'auto text = "[op] must be a whole number";\n', "message"),
        ("c.md", "A paragraph.\n\n- the order of\n  addition\n", "markdown"),
    ],
)
def test_refused_phrase_is_found_elsewhere(tmp_path, monkeypatch, name, source, kind):
    assert refused(tmp_path, monkeypatch, name, source) == {kind}


def test_refused_phrase_is_ignored_in_code(tmp_path, monkeypatch):
    assert not refused(tmp_path, monkeypatch, "d.md", "```python\nadded up = 1  # lies\n```\n")


def refused(tmp_path, monkeypatch, name, source):
    """Return the kinds of prose in which `source` holds a refused phrase."""
    (tmp_path / name).write_text(source)
    monkeypatch.setattr(prose, "ROOT", tmp_path)
    monkeypatch.setattr(style, "ROOT", tmp_path)
    monkeypatch.setattr(style, "AREAS", {"python": (".",), "markdown": (".",)})
    kinds = {text.text: text.kind for text in prose.texts(".")}
    return {
        kinds[
            next(text for text in kinds if place.reason.split("...")[1] in " ".join(text.split()))
        ]
        for place in style.refused_places()
    }


def test_sentences_are_counted_without_code_and_links():
    text = "You call `f(x)`. It returns [the docs](https://example.org/a) of a tensor."
    assert [len(sentence.split()) for sentence in prose.sentences(text)] == [3, 7]


@pytest.mark.parametrize(
    ("word", "verb", "clause"),
    [
        ("Return", True, False),
        ("Compute", True, False),
        ("What", False, True),
        ("The", False, False),
    ],
)
def test_first_words_are_told_apart(word, verb, clause):
    assert vocabulary.is_verb(word) is verb
    assert vocabulary.is_clause(word) is clause
