"""What a program may consist of: for each operation how to draw it, its text and its meaning."""

from __future__ import annotations

from fuzz.ops import elementwise, flow, indices, matrices, positions, products, reductions, shapes
from fuzz.ops.table import Op

OPS: dict[str, Op] = {
    op.name: op
    for family in (elementwise, reductions, products, matrices, shapes, indices, positions, flow)
    for op in family.ROWS
}
