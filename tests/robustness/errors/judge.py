"""Whether a refusal is ours: it says who refuses, which rule, the values, and how to go on."""

from __future__ import annotations

import re

# "[reshape] …: got …". What Python says of a call itself names the function and the rule.
WHO = re.compile(r"\[[^\W\d][^\[\]'\",]*\] |\[[<>=!]+\] ")
CALL = re.compile(
    r"(?P<name>[A-Za-z_][\w.]*)\(\) (missing \d+ required|got an unexpected keyword|got multiple "
    r"values for|takes \d+ positional|takes from \d+ to \d+ positional|got some positional-only|"
    r"takes no arguments|argument after)"
)
ABSTRACT = re.compile(r"Can't instantiate abstract class [A-Z]\w+ ")
# Texts of the binding, of NumPy's and Python's inner life: never shown, whoever says them.
INNER = (
    "incompatible function arguments", "Unable to cast", "Unable to convert", "samegrad::",
    "_core.", "std::", "invoked with:", "object has no attribute", "not subscriptable",
    "<lambda>()", "<locals>.method", "bad_alloc", "arguments must fit each other",
)  # fmt: skip
MOST_LETTERS = 1200


def is_public(name: str) -> bool:
    parts = [part for part in name.split(".") if part]
    special = [part for part in parts if part.startswith("__") and part.endswith("__")]
    return not any(
        (part.startswith("_") or part.endswith("_")) and part not in special for part in parts
    )


def fault_of(error: BaseException) -> str | None:
    """What is wrong with a refusal, or None."""
    text = re.sub(r"^\[Errno \d+\] ", "", str(error))
    if len(text) > MOST_LETTERS:
        return "too long"
    inner = next((part for part in INNER if part in text), None)
    if inner:
        return f"shows {inner!r}"
    if ABSTRACT.match(text):
        return None
    call = CALL.match(text)
    if isinstance(error, TypeError) and call:
        return None if is_public(call["name"]) else "names an inner function"
    who = WHO.match(text)
    if not who:
        return "does not say who"
    rest = text[who.end() :]
    if not VALUES.search(rest) and not NOTHING_GIVEN.search(rest):
        return "does not show the values"
    return None


VALUES = re.compile(r"got |\d|'[^']*'|: /\S+|cannot [a-z]+( into| for)? \S*[/.:]\S*")
# Refusals of a moment, not of an argument: no value is wrong.
NOTHING_GIVEN = re.compile(
    r"call (it|the layer|the model|this)|define |compute the target|compile it|has no value yet|"
    r"is unhashable|needs the tape|outside strategy.run"
)
