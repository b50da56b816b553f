"""The fix of a local mean as a unified diff of the line of user code that takes it."""

from __future__ import annotations

import ast
import difflib
import inspect
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from samegrad_doctor._catalogue import MEAN_OF_MEANS, MEAN_THEN_SUM

_LOSSES = (
    "cross_entropy", "nll_loss", "mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss",
    "binary_cross_entropy", "binary_cross_entropy_with_logits",
)  # fmt: skip
_SIMPLE = (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Return, ast.Expr)
_OPAQUE = (
    ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda, ast.ListComp, ast.SetComp,
    ast.DictComp, ast.GeneratorExp,
)  # fmt: skip


class _Mean(NamedTuple):
    """A mean over the local batch that a call takes."""

    function: ast.FunctionDef
    statement: ast.stmt
    call: ast.Call
    total: str  # the sum instead, as source
    size: str  # the values that are counted, or how many there are
    first: str = ""  # a statement to put before


def suggest(step: Callable[..., Any], name: str, framework: str) -> str:
    """Return the fix as a unified diff of the user's file, or "".

    There is one if the failure mode is a mean over the local batch, and the user's function (and
    what it calls in its file) takes exactly one mean.

    Args:
        step: The step; an adapter tells the user's function by the attribute `source`.
        name: The name of the failure mode.
        framework: The framework of the step.
    """
    if name not in (MEAN_OF_MEANS.name, MEAN_THEN_SUM.name) or framework not in _COUNT:
        return ""
    function = inspect.unwrap(getattr(step, "source", step))
    try:
        file = Path(inspect.getsourcefile(function) or "")
        source = file.read_text()
        tree = ast.parse(source)
    except (OSError, TypeError, SyntaxError, ValueError):
        return ""
    module, count = _COUNT[framework]
    imported = [node for node in ast.walk(tree) if isinstance(node, ast.alias)]
    names = {name.asname or name.name.partition(".")[0] for name in imported}
    reached = list(_reached(tree, function)) if module in names else []
    means = [mean for one in reached for mean in _means(one, framework)]
    if len(means) != 1 or not _is_loss(means[0]):
        return ""
    before, divided = count(means[0], name == MEAN_OF_MEANS.name, reached)
    return _diff(source, file, means[0], before, divided) if divided else ""


def _is_loss(mean: _Mean) -> bool:
    """Return True if a mean is what its function returns first, or is differentiated."""
    losses: list[ast.AST] = []
    for node in ast.walk(mean.function):
        if isinstance(node, ast.Return) and node.value is not None:
            several = isinstance(node.value, ast.Tuple) and node.value.elts
            losses.append(several[0] if several else node.value)
        elif isinstance(node, ast.Attribute) and node.attr == "backward":
            losses.append(node.value)
    parts = [part for one in losses for part in ast.walk(one)]
    if isinstance(mean.statement, ast.Assign) and len(mean.statement.targets) == 1:
        name = ast.unparse(mean.statement.targets[0])
        return any(ast.unparse(part) == name for part in parts)
    return isinstance(mean.statement, ast.Return) and mean.call in parts


def _reached(tree: ast.Module, function: Callable[..., Any]) -> Iterator[ast.FunctionDef]:
    """Yield a function of a file, and those of the file that it names, if no two have the name."""
    nodes = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    defined = [node.name for node in nodes]
    name = getattr(function, "__name__", "")
    line = getattr(getattr(function, "__code__", None), "co_firstlineno", 0)
    known = {node.name: node for node in nodes if defined.count(node.name) == 1}
    for node in nodes:
        if line in (node.lineno, *(each.lineno for each in node.decorator_list)):
            known[name] = node
    todo, seen = [name], set()
    while todo:
        if (name := todo.pop()) in known and name not in seen:
            seen.add(name)
            yield known[name]
            names = [node for node in ast.walk(known[name]) if isinstance(node, ast.Name)]
            own = {node.id for node in names if isinstance(node.ctx, ast.Store)}
            inner = {other for other, node in known.items() if node in ast.walk(known[name])}
            todo += sorted(({node.id for node in names} - own) | inner)


def _means(function: ast.FunctionDef, framework: str) -> Iterator[_Mean]:
    """Yield the means in the simple statements of a function, without those of inner ones."""
    free = _free("losses", [function])
    for statement, call in _calls(function):
        if (found := _mean_of(call, framework, free)) is not None:
            yield _Mean(function, statement, call, *found)


def _calls(node: ast.AST, statement: ast.stmt | None = None) -> Iterator[tuple[ast.stmt, ast.Call]]:
    """Yield the calls in simple statements, each with its statement."""
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, _OPAQUE):
            own = child if isinstance(child, _SIMPLE) else statement
            if own is not None and isinstance(child, ast.Call):
                yield own, child
            yield from _calls(child, own)


def _mean_of(call: ast.Call, framework: str, free: str) -> tuple[str, ...] | None:
    """Return the sum, the size and the first statement for a call that takes a mean.

    It is a loss, `values.mean()` or `reduce_mean(values)`.
    """
    if not isinstance(call.func, ast.Attribute):
        return None
    words = {word.arg: word.value for word in call.keywords}
    owner, method = call.func.value, call.func.attr
    if framework == "pytorch" and method in _LOSSES and len(call.args) == 2:
        return _mean_of_a_loss(call, words)
    module = ast.unparse(owner)
    if method == "mean" and not call.args and not words:
        values, total = owner, "{0}.sum()"
    elif len(call.args) == 1 and not words and (
        (method == "mean" and module in ("torch", "jnp", "jax.numpy"))
        or (method == "reduce_mean" and framework in ("tensorflow", "samegrad"))
    ):  # fmt: skip
        values, total = call.args[0], f"{module}.{method.replace('mean', 'sum')}({{0}})"
    else:
        return None
    if isinstance(values, ast.Name):
        return total.format(values.id), values.id
    return total.format(free), free, f"{free} = {ast.unparse(values)}"


def _mean_of_a_loss(call: ast.Call, words: dict[str | None, ast.expr]) -> tuple[str, ...] | None:
    reduction = words.pop("reduction", ast.Constant("mean"))
    if not (isinstance(reduction, ast.Constant) and reduction.value == "mean"):
        return None
    if not words.keys() <= {"ignore_index", "label_smoothing", "beta", "delta"}:
        return None
    target = ast.unparse(call.args[1])
    size = target
    if ast.unparse(call.func).endswith(("cross_entropy", "nll_loss")):
        size = f"({target} != -100).sum()"  # labels that the loss leaves out by default
    if "ignore_index" in words:
        size = f"({target} != {ast.unparse(words['ignore_index'])}).sum()"
    kept = [ast.unparse(argument) for argument in call.args]
    kept += [f"{key}={ast.unparse(value)}" for key, value in words.items()]
    total = f'{ast.unparse(call.func)}({", ".join(kept)}, reduction="sum")'
    return total, size


_Lines = tuple[list[str], str]  # statements before, and the mean of all replicas


def _in_torch(mean: _Mean, averaged: bool, functions: list[ast.FunctionDef]) -> _Lines:
    count, number = _free("count", functions), f"{mean.size}.float()"
    if not mean.size.endswith(".sum()"):
        number = f"torch.tensor(float({mean.size}.numel()), device={mean.size}.device)"
    before = [f"{count} = {number}", f"torch.distributed.all_reduce({count})"]
    times = " * torch.distributed.get_world_size()" if averaged else ""
    return before, f"{mean.total}{times} / {count}"


def _in_tensorflow(mean: _Mean, averaged: bool, functions: list[ast.FunctionDef]) -> _Lines:
    count, context = _free("count", functions), _free("context", functions)
    local = f"tf.cast(tf.size({mean.size}), {mean.size}.dtype)"
    before = [
        f"{context} = tf.distribute.get_replica_context()",
        f'{count} = {context}.all_reduce("SUM", {local})',
    ]
    times = f" * {context}.num_replicas_in_sync" if averaged else ""
    return before, f"{mean.total}{times} / {count}"


def _in_jax(mean: _Mean, averaged: bool, functions: list[ast.FunctionDef]) -> _Lines:
    """Return the mean of all devices, if the reductions of the file name one axis."""
    calls = [c for one in functions for c in ast.walk(one) if isinstance(c, ast.Call)]
    reductions = [call for call in calls if ast.unparse(call.func).endswith(("pmean", "psum"))]
    axes = {ast.unparse(argument) for call in reductions for argument in call.args[1:]}
    if len(axes) != 1:
        return [], ""
    axis = axes.pop()
    times = f" * jax.lax.psum(1, {axis})" if averaged else ""
    return [], f"{mean.total}{times} / jax.lax.psum({mean.size}.size, {axis})"


def _free(name: str, functions: list[ast.FunctionDef]) -> str:
    """Return a name that the functions do not use."""
    nodes = [node for one in functions for node in ast.walk(one)]
    used = {getattr(node, key, None) for node in nodes for key in ("id", "arg")}
    while name in used:
        name += "_"
    return name


# By framework: the module's name in the file, and the function that counts.
_COUNT = {"pytorch": ("torch", _in_torch), "tensorflow": ("tf", _in_tensorflow),
          "samegrad": ("tf", _in_tensorflow), "jax": ("jax", _in_jax)}  # fmt: skip


def _diff(source: str, file: Path, mean: _Mean, before: list[str], divided: str) -> str:
    """Return the unified diff of a file in which a mean is replaced."""
    lines = source.splitlines(keepends=True)
    first, last = mean.statement.lineno - 1, mean.statement.end_lineno or mean.statement.lineno
    old = "".join(lines[first:last])
    call = ast.get_source_segment(source, mean.call)
    before_it = lines[first].encode()[: mean.statement.col_offset]
    if call is None or old.count(call) != 1 or before_it.strip():  # `else: loss = …` on one line
        return ""
    whole = getattr(mean.statement, "value", None) is mean.call
    new = old.replace(call, divided if whole else f"({divided})")
    indent = old[: len(old) - len(old.lstrip())]
    added = [line for line in (mean.first, *before) if line]
    text = textwrap.indent("".join(f"{line}\n" for line in added), indent) + new
    changed = [*lines[:first], *text.splitlines(keepends=True), *lines[last:]]
    return "".join(difflib.unified_diff(lines, changed, file.name, file.name, n=0)).rstrip("\n")
