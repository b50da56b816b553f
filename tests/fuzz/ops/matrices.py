"""Factors, inverses and determinants of each example's matrix."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fuzz import dual
from fuzz.dual import Dual, Number, mul
from fuzz.ops.table import Attrs, Drawn, Env, Op
from fuzz.program import N, Type

if TYPE_CHECKING:
    from fuzz.generate import Draw

KINDS = ("cholesky", "inverse", "solve", "log_det", "det", "triangular")
MOST_ROWS = 12


def _draw(g: Draw) -> Drawn | None:
    """Of x xᵀ and something on the diagonal, so that there are factors."""

    def fits(t: Type) -> bool:
        return (
            t.kind == "f" and len(t.shape) >= 3 and t.shape[0] == N()
            and all(isinstance(d, int) and d > 0 for d in t.shape[1:])
            and t.shape[-2] <= MOST_ROWS
        )  # fmt: skip

    x = g.pick(fits) if g.dtype != "bfloat16" else None
    if x is None:
        return None
    t, kind = g.types[x], g.rng.choice(KINDS)
    rows, columns = t.shape[-2:]
    attrs = {"kind": kind, "rows": rows, "scale": round(1 / (4 * columns), 6)}  # type: ignore[operator]
    shape = {"solve": t.shape, "triangular": t.shape, "log_det": t.shape[:-2], "det": t.shape[:-2]}
    return (x,), attrs, Type(shape.get(kind, (*t.shape[:-1], rows)), local=t.local)


def _text(out: str, i: list[str], attrs: Attrs) -> list[str]:
    matrix = f"{out}_m"
    call = {
        "cholesky": f"tf.linalg.cholesky({matrix})",
        "inverse": f"tf.linalg.inv({matrix})",
        "solve": f"tf.linalg.solve({matrix}, {i[0]})",
        "log_det": f"tf.linalg.logdet({matrix})",
        "det": f"tf.linalg.det({matrix})",
        "triangular": f"tf.linalg.triangular_solve(tf.linalg.cholesky({matrix}), {i[0]})",
    }[attrs["kind"]]
    squared = f"{attrs['scale']} * tf.matmul({i[0]}, {i[0]}, transpose_b=True)"
    return [f"{matrix} = {squared} + tf.eye({attrs['rows']}, dtype=FLOAT)", f"{out} = {call}"]


def _meaning(v: list[Number], attrs: Attrs, env: Env) -> Number:
    squared = mul(attrs["scale"], env.moved(dual.matmul(v[0], v[0], False, True), True))
    matrix = dual.add(squared, np.eye(attrs["rows"]))
    kind = attrs["kind"]
    if kind in ("cholesky", "triangular"):
        factor = env.moved(cholesky(matrix), True)
        return factor if kind == "cholesky" else _product(inverse(factor), v[0])
    if kind in ("log_det", "det"):
        return log_det(matrix) if kind == "log_det" else dual.unary("exp", log_det(matrix))
    inverted = env.moved(inverse(matrix), True)
    return inverted if kind == "inverse" else _product(inverted, v[0])


def _product(a: Number, b: Number) -> Number:
    return dual.matmul(a, b, False, False)


def _transposed(x: Number) -> Number:
    return dual.linear(lambda v: np.swapaxes(v, -1, -2), x)


def inverse(x: Number) -> Number:
    """d(x⁻¹) = -x⁻¹ dx x⁻¹."""
    if not isinstance(x, Dual):
        return np.linalg.inv(x)
    known = inverse(x.primal)
    return Dual(known, mul(-1.0, _product(_product(known, x.tangent), known)), x.level)


def cholesky(x: Number) -> Number:
    """dL = L φ(L⁻¹ dx L⁻ᵀ), φ keeping the lower half and half of the diagonal (Murray 2016)."""
    if not isinstance(x, Dual):
        return np.linalg.cholesky(x)
    factor = cholesky(x.primal)
    inverted = inverse(factor)
    inner = _product(_product(inverted, x.tangent), _transposed(inverted))
    half = dual.linear(lambda v: np.tril(v) - 0.5 * v * np.eye(v.shape[-1]), inner)
    return Dual(factor, _product(factor, half), x.level)


def log_det(x: Number) -> Number:
    """d log(det(x)) = tr(x⁻¹ dx)."""
    if not isinstance(x, Dual):
        return np.linalg.slogdet(x)[1]
    inner = _product(inverse(x.primal), x.tangent)
    traced = dual.linear(lambda v: np.trace(v, axis1=-2, axis2=-1), inner)
    return Dual(log_det(x.primal), traced, x.level)


ROWS = [Op("matrices", _draw, _text, _meaning, weight=1.0, feature="matrices")]
