"""Classes of the results of calls, from annotations."""

from __future__ import annotations

import functools
import inspect

from samegrad._surface.missing_names import look_up

# Where the classes live that annotations name.
_CLASSES = {
    "Dataset": "data.Dataset",
    "RaggedTensor": "RaggedTensor",
    "Tensor": "Tensor",
    "Variable": "Variable",
    "GradientTape": "GradientTape",
    "TensorArray": "TensorArray",
    "Generator": "random.Generator",
}


# Functions whose annotations say less than what nearly all calls give.
_MADE = dict.fromkeys(("ragged.constant", "ragged.range", "ragged.stack"), "RaggedTensor()")


def may_be_ragged(name: str) -> bool:
    """Return True if ragged tensors have an attribute that tensors lack.

    Functions that are annotated with tensors give ragged ones of ragged ones.

    Example:
        >>> may_be_ragged("to_tensor"), may_be_ragged("shape")
        (True, False)
    """
    ragged, tensor = (look_up(kind)[0] for kind in ("RaggedTensor", "Tensor"))
    return hasattr(ragged, name) and not hasattr(tensor, name)


@functools.cache
def result_of(path: str) -> str | None:
    """Return the class of a call's result, such as "data.Dataset()", or None.

    Example:
        >>> result_of("data.Dataset.range"), result_of("GradientTape"), result_of("nest.flatten")
        ('data.Dataset()', 'GradientTape()', None)
    """
    if path in _MADE:
        return _MADE[path]
    found, rest = look_up(path)
    if rest or found is None or path.endswith("()"):
        return None  # what a layer or a model gives, say
    if isinstance(found, type):
        return f"{path}()" if found.__module__.partition(".")[0] in ("samegrad", "keras") else None
    function = inspect.unwrap(getattr(found, "__func__", found))
    named = getattr(function, "__annotations__", {}).get("return")
    if named == "Self":
        return path.rpartition(".")[0].removesuffix("()") + "()"
    kind = _CLASSES.get(named) if isinstance(named, str) else None
    return None if kind is None else f"{kind}()"
