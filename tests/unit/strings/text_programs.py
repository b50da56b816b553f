"""Programs on text; they run with TensorFlow and with samegrad alike."""

import itertools

import numpy as np

REVIEW = "This was GREAT!<br /><br />I'd see it\tagain... (10/10)"
PUNCTUATION = r"""[!"#$%&()\*\+,-\./:;<=>?@\[\\\]^_`{|}~\']"""
NUMBERS = [
    " 1.5", "1_0", "nan", "1e400", "-Infinity", "", "1.", ".5", "1e5", " 2 ", "+3", "5.0", "5",
    "99999999999", "2147483647", "2147483648", "-2147483648", "x", "1 2",
]  # fmt: skip

PROGRAMS = {
    "lower": lambda s: s.lower(["The CAT", "ÄBC", ""]),
    "lower_utf8": lambda s: s.lower("ÄBC Ω", encoding="utf-8"),
    "upper": lambda s: s.upper(["The cat", "äbc"]),
    "upper_utf8": lambda s: s.upper("äbcß", "utf-8"),
    "strip": lambda s: s.strip([" \t a b\n", "", "  "]),
    "length": lambda s: s.length([["wör", ""], ["a", "日本"]]),
    "length_of_letters": lambda s: s.length([["wör", ""], ["a", "日本"]], unit="UTF8_CHAR"),
    "split": lambda s: s.split(["the  cat sat", "", " on "]),
    "split_one": lambda s: s.split("a,b,,c", sep=","),
    "split_empty": lambda s: s.split("", sep=","),
    "split_blank": lambda s: s.split("   "),
    "split_at_most": lambda s: s.split("a b c d", maxsplit=1),
    "split_at_most_by": lambda s: s.split(["a  b c d"], sep=" ", maxsplit=2),
    "split_padded": lambda s: s.split(["a b", "c"]).to_tensor(),
    "split_padded_with": lambda s: s.split(["a b", "c"]).to_tensor(default_value="-", shape=[2, 3]),
    "split_lengths": lambda s: s.split(["a b", "", "c"]).row_lengths(),
    "join": lambda s: s.join(["a", ["b", "c"], "d"], separator="-"),
    "join_rows": lambda s: s.join([["a", "b"], ["c", "d"]]),
    "reduce_join": lambda s: s.reduce_join([["a", "b"], ["c", "d"]], separator="-"),
    "reduce_join_rows": lambda s: s.reduce_join([["a", "b"], ["c", "d"]], axis=1),
    "reduce_join_columns": lambda s: s.reduce_join([["a", "b"], ["c", "d"]], 0, keepdims=True),
    "reduce_join_order": lambda s: s.reduce_join([["a", "b"], ["c", "d"]], axis=[0, 1]),
    "reduce_join_other_order": lambda s: s.reduce_join([["a", "b"], ["c", "d"]], axis=[1, 0]),
    "regex_tags": lambda s: s.regex_replace(REVIEW, "<br />", " "),
    "regex_punctuation": lambda s: s.regex_replace(REVIEW, PUNCTUATION, ""),
    "regex_once": lambda s: s.regex_replace(["aaa", "bab"], "a", "x", replace_global=False),
    "regex_groups": lambda s: s.regex_replace("key=value", r"(\w+)=(\w+)", r"\2:\1 \0 \\"),
    "regex_optional_group": lambda s: s.regex_replace("ac abc", "a(b)?c", r"[\1]"),
    "regex_empty_matches": lambda s: s.regex_replace(["aaa", "abxd", ""], "x*", "-"),
    "regex_posix": lambda s: s.regex_replace("a.b!? [x]", "[[:punct:]]+", "_"),
    "regex_posix_not": lambda s: s.regex_replace("a.b!? [x]", "[^[:alpha:] ]", "_"),
    "regex_ascii_classes": lambda s: s.regex_replace("aé b ٣ 3", r"\w+|\d", "x"),
    "regex_end": lambda s: s.regex_replace("a\n", "$", "E"),
    "regex_lines": lambda s: s.regex_replace("a\nb", "(?m)$", "E"),
    "regex_bracket": lambda s: s.regex_replace("a]b[c", r"[][]", "-"),
    "regex_padded": lambda s: s.regex_replace(["¿qué?"], r"([?.!,¿])", r" \1 "),
    "regex_full": lambda s: s.regex_full_match(["ab", "abc", "a\n"], "a.?"),
    "substr": lambda s: s.substr(["hello", "world"], 1, 3),
    "substr_from_end": lambda s: s.substr("hello", -3, 2),
    "substr_at_end": lambda s: s.substr("hello", 5, 2),
    "substr_rest": lambda s: s.substr("hello", 1, -1),
    "substr_each": lambda s: s.substr(["hello", "wörld"], [1, 2], [3, 1], unit="UTF8_CHAR"),
    "as_string": lambda s: s.as_string(np.array([1, -22, 2**40])),
    "as_string_floats": lambda s: s.as_string(np.array([1.5, 1e10, -0.1], np.float32)),
    "as_string_precision": lambda s: s.as_string(np.array([3.14159]), precision=2),
    "as_string_scientific": lambda s: s.as_string(np.array([31415.9]), scientific=True),
    "as_string_shortest": lambda s: s.as_string(np.array([1.5, 1e10]), shortest=True),
    "as_string_bools": lambda s: s.as_string(np.array([True, False]), width=6),
    "as_string_width": lambda s: s.as_string(np.array([7, 1234]), width=3, fill="0"),
    "as_string_left": lambda s: s.as_string(np.array([7]), width=4, fill="-"),
    "format": lambda s: s.format("a {} b {}", ("x", np.array([1.5, 2.0], np.float32))),
    "format_long": lambda s: s.format("{}", [np.arange(10)]),
    "format_other_place": lambda s: s.format("<> {}", [np.int64(3)], placeholder="<>"),
    "unicode_split": lambda s: s.unicode_split(["wör", "", "日本"], "UTF-8"),
    "unicode_split_bad": lambda s: s.unicode_split(b"a\xffb", "UTF-8"),
    "unicode_split_ignore": lambda s: s.unicode_split(b"a\xffb", "UTF-8", errors="ignore"),
    "unicode_decode": lambda s: s.unicode_decode(["wör", "a"], "UTF-8"),
    "unicode_decode_one": lambda s: s.unicode_decode("日本", "UTF-8"),
    "unicode_encode": lambda s: s.unicode_encode(np.array([119, 246], np.int32), "UTF-8"),
    "bytes_split": lambda s: s.bytes_split(["abc", "", "ä"]),
    "ngrams": lambda s: s.ngrams(["a", "b", "c"], 2),
    "ngrams_of_widths": lambda s: s.ngrams(["a", "b", "c"], [1, 3], separator="_"),
    "hash": lambda s: s.to_hash_bucket(["", "a", "8 bytes.", "hello world", "x" * 100], 1000),
    "transcode": lambda s: s.unicode_transcode(["aé😀", b"a\xffb"], "UTF-8", "UTF-16-BE"),
    "transcode_back": lambda s: s.unicode_transcode(b"\0a\xd8\x3d\xde\0", "UTF-16-BE", "UTF-8"),
    "transcode_wide": lambda s: s.unicode_transcode([["é"]], "UTF-8", "UTF-32-BE"),
    "transcode_genuine": lambda s: s.unicode_transcode(
        ["a\ufffdb".encode() + b"\xe2\x82c\xff", b"\xff\x01"],
        "UTF-8",
        "UTF-8",
        replacement_char=63,
        replace_control_characters=True,
    ),
    "transcode_genuine_wide": lambda s: s.unicode_transcode(
        [b"\xff\xfd\xd8\x3d\0a\0"], "UTF-16-BE", "UTF-8", replacement_char=63
    ),
    "transcode_ignore": lambda s: s.unicode_transcode(
        b"a\xe2\x82b\x01", "UTF-8", "UTF-8", errors="ignore", replace_control_characters=True
    ),
    "transcode_replace": lambda s: s.unicode_transcode(
        b"a\xe2\x82b\x01", "UTF-8", "UTF-8", replacement_char=63, replace_control_characters=True
    ),
    "error transcode": lambda s: s.unicode_transcode(b"\xff", "UTF-8", "UTF-8", errors="strict"),
    "hash_fast": lambda s: s.to_hash_bucket_fast(["", "a", "hello world", "x" * 100], 1000),
    "hash_strong": lambda s: s.to_hash_bucket_strong(["", "a", "x" * 100], 1000, key=[3, 5]),
    **{
        f"to_number {kind} {text!r}": lambda s, text=text, kind=kind: s.to_number([text], kind)
        for kind in ("float32", "int32", "int64")
        for text in NUMBERS
    },
    "error substr": lambda s: s.substr(["ok", "hello"], 3, 2),
    "error regex": lambda s: s.regex_replace("a", "(", "x"),
    "error unicode": lambda s: s.unicode_split(b"a\xffb", "UTF-8", errors="strict"),
}

for _words, _width, _pads, _padding, _short in itertools.product(
    (["a", "b", "c"], ["a"]), (2, [1, 2], [3, 4]), (None, "P", ("L", "R")), (None, 1), (False, True)
):
    if _pads or not _padding:
        PROGRAMS[f"ngrams {_words} {_width} {_pads} {_padding} {_short}"] = (
            lambda s, given=(_words, _width, "|", _pads, _padding, _short): s.ngrams(*given)
        )
for _errors in ("replace", "ignore", "strict"):
    PROGRAMS |= {
        f"encode invalid {_errors}": (
            lambda s, e=_errors: s.unicode_encode([97, 0x110000, 98], "UTF-8", e, 63)
        ),
        f"encode matrix {_errors}": (
            lambda s, e=_errors: s.unicode_encode([[97, 98], [99, 100]], "UTF-16-BE", e, 63)
        ),
        f"decode controls {_errors}": (
            lambda s, e=_errors: s.unicode_decode(b"ab\x01", "UTF-8", e, 63, True)
        ),
        f"split invalid {_errors}": (
            lambda s, e=_errors: s.unicode_split(b"a\xffb", "UTF-8", e, 63)
        ),
    }


def plain(value):
    """What JSON holds of a result; bytes as their Latin letters."""
    if hasattr(value, "to_list"):
        value = value.to_list()
    elif hasattr(value, "numpy"):
        value = value.numpy()
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, bytes):
        return value.decode("latin-1")
    if isinstance(value, float):
        return repr(value)
    return [plain(part) for part in value] if isinstance(value, list) else value


def record(tf):
    """What each program gives; None where it is refused."""
    found = {}
    for name, program in PROGRAMS.items():
        try:
            found[name] = plain(program(tf.strings))
        except tf.errors.InvalidArgumentError:
            found[name] = None
    return found
