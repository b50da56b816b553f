"""tf.strings: TensorFlow's results, and what text may and may not do."""

from __future__ import annotations

import json
import pathlib
import pickle
import re

import numpy as np
import pytest
from text_programs import PROGRAMS, plain

import samegrad as tf

RECORDED = json.loads(pathlib.Path(__file__).with_name("tensorflow_text.json").read_text())


@pytest.mark.parametrize("name", PROGRAMS)
def test_results_are_those_of_tensorflow(name):
    expected = RECORDED["results"][name]
    if expected is None:
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"^\[tf\.strings\."):
            PROGRAMS[name](tf.strings)
    else:
        assert plain(PROGRAMS[name](tf.strings)) == expected


def test_every_recorded_program_is_there():
    assert set(RECORDED["results"]) == set(PROGRAMS)


def test_text_is_a_constant_with_bytes():
    text = tf.constant(["a", b"b\x00", "ä"])
    assert text.dtype == tf.string and text.dtype == "string"
    assert text.shape == (3,) and len(text) == 3
    assert text.numpy().tolist() == [b"a", b"b\x00", b"\xc3\xa4"]
    assert tf.constant("a").numpy() == b"a"
    assert tf.constant([["a", "b"]], shape=(2, 1)).numpy().tolist() == [[b"a"], [b"b"]]
    assert tf.constant("a", shape=(2,)).numpy().tolist() == [b"a", b"a"]
    assert tf.convert_to_tensor(np.array(["x", "y"])).numpy().tolist() == [b"x", b"y"]
    assert tf.constant([], tf.string).shape == (0,)
    assert tf.is_tensor(text) and isinstance(tf.string, tf.DType)


def test_text_compares_element_by_element_also_with_numpy_on_the_left():
    text = tf.constant(["a", "b"])
    assert (text == "a").numpy().tolist() == [True, False]
    assert (text != ["a", "x"]).numpy().tolist() == [False, True]
    assert (np.array(["a", "b"]) == tf.constant("b")).numpy().tolist() == [False, True]
    assert int(tf.argmax(tf.cast(tf.constant("b") == np.array(["a", "b"]), "int32"))) == 1
    assert (tf.constant("a") == 3) is False


def test_text_is_indexed_and_joined():
    text = tf.strings.split("data/cats/1.png", "/")
    assert text[-2].numpy() == b"cats"
    assert text[:2].numpy().tolist() == [b"data", b"cats"]
    assert [part.numpy() for part in text] == [b"data", b"cats", b"1.png"]
    assert (text[0] + "/" + text[1]).numpy() == b"data/cats"
    assert ("x" + tf.constant(["a", "b"])).numpy().tolist() == [b"xa", b"xb"]
    assert text[tf.constant(1)].numpy() == b"cats"


def test_text_is_shown(capsys):
    text = tf.constant(["a", "b"])
    assert repr(text) == "<samegrad.Text: shape=(2,), numpy=array([b'a', b'b'], dtype=object)>"
    assert f"{tf.constant('a')}" == "b'a'"
    tf.print(text, tf.constant("c"))
    assert capsys.readouterr().err == '["a" "b"] "c"\n'


def test_text_is_copied_by_pickle():
    text = pickle.loads(pickle.dumps(tf.constant(["a", "b"])))
    assert text.numpy().tolist() == [b"a", b"b"]
    assert pickle.loads(pickle.dumps(tf.string)) is tf.string


def test_a_thousand_times_more_text_is_the_same_text():
    words = [f"Word {n}" for n in range(10_000)]
    assert tf.strings.lower(words).numpy().tolist() == [w.lower().encode() for w in words]
    assert tf.strings.length(words).numpy().tolist() == [len(w) for w in words]


@pytest.mark.parametrize("shape", [(0,), (2, 0)])
def test_no_text_at_all_is_no_text(shape):
    none = np.empty(shape, object)
    assert tf.strings.lower(none).shape == shape
    assert tf.strings.length(none).shape == shape
    assert tf.strings.regex_replace(none, "a", "b").shape == shape
    assert tf.strings.to_number(none).shape == shape


@pytest.mark.parametrize("wrong", ["1_0", "", "0x1", "1\0", "-"])
@pytest.mark.parametrize("kind", ["float32", "int64"])
def test_to_number_names_the_first_invalid_string(wrong, kind):
    said = f"must be a {kind}: got {wrong.encode()!r} at position 2."
    with pytest.raises(ValueError, match=re.escape(said)):
        tf.strings.to_number([["1", " 2"], [wrong, "x"]], kind)


def test_to_number_limits_follow_the_dtype():
    assert tf.strings.to_number(["1e400", "-1e39"]).numpy().tolist() == [np.inf, -np.inf]
    assert tf.strings.to_number("-2147483648", "int32").numpy() == -(2**31)
    for kind, wrong in (("int32", "2147483648"), ("int64", "9223372036854775808")):
        with pytest.raises(ValueError, match=f"got b'{wrong}' at position 1"):
            tf.strings.to_number(["1", wrong], kind)


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [("o*", ["-b- -", "-", "-x-a-x-"]), ("x?", ["-b-o-o- -o-o-", "-", "-a-"]),
     (r"\b", ["-boo- -oo-", "", "-xax-"])],
)  # fmt: skip
def test_regex_replace_ignores_empty_matches_right_after_a_match(pattern, expected):
    made = tf.strings.regex_replace(["boo oo", "", "xax"], pattern, "-")  # as TensorFlow 2.21
    assert made.strings.tolist() == expected


@pytest.mark.parametrize(
    ("call", "error", "said"),
    [
        (lambda: tf.strings.lower(5), TypeError, "input must be strings: got 5"),
        (lambda: tf.strings.lower(["a", 1]), TypeError, "input must be strings"),
        (lambda: tf.strings.lower("a", "latin"), ValueError, "encoding must be"),
        (lambda: tf.strings.join(["a", 1]), TypeError, "each of inputs must be strings: got 1"),
        (lambda: tf.strings.join([["a"], ["b", "c"], ["d"] * 3]), ValueError, "fit each other"),
        (lambda: tf.strings.join([]), ValueError, "at least one"),
        (lambda: tf.strings.to_number("a", "uint8"), TypeError, "out_type"),
        (lambda: tf.strings.length("a", unit="LETTER"), ValueError, "unit must be one of"),
        (lambda: tf.strings.regex_replace("a", r"\pL", ""), ValueError, "class of Unicode"),
        (lambda: tf.strings.regex_replace("a", "a", r"\1"), ValueError, "groups of the pattern"),
        (lambda: tf.strings.format("{} {}", [1]), ValueError, "1 inputs and 2 places"),
        (lambda: tf.strings.reduce_join(["a"], axis=1), ValueError, r"axis must lie in \[-1, 1\)"),
        (lambda: tf.strings.split([["a"]]), ValueError, "row by row"),
        (lambda: tf.strings.unicode_encode([1.5]), TypeError, "integers: got float32"),
        (lambda: tf.constant(["a", 1]), TypeError, "strings are needed"),
        (lambda: tf.constant(["a", ["b"]]), ValueError, "must have one shape"),
        (lambda: tf.cast(1, tf.string), TypeError, "strings"),
        (lambda: tf.constant("a") + 1, TypeError, "as_string"),
        (lambda: tf.constant(["a"])[3], IndexError, "out of bounds"),
        (lambda: len(tf.constant("a")), TypeError, "no length"),
        (lambda: tf.constant(b"\xff").strings, ValueError, "byte 0xff at place 0"),
    ],
)  # fmt: skip
def test_what_is_no_text_is_refused(call, error, said):
    with pytest.raises(error, match=said) as raised:
        call()
    assert re.match(r"^\[[\w. ]+\] ", str(raised.value))


@pytest.mark.parametrize("places", [(0.5, 1), (0, [[0.5]]), ("a", 1)], ids=str)
def test_substr_takes_integers(places):
    with pytest.raises(TypeError, match=r"\[tf.strings.substr\] (pos|len) must be integers: got"):
        tf.strings.substr("abc", *places)
