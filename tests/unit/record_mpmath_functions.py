"""Record mpmath's values of function_points.py: run it with a Python that has mpmath.

A value is the sum of two doubles, so that errors below a unit of the last place are seen.
"""

from __future__ import annotations

import json
from pathlib import Path

import mpmath as mp
from function_points import CASES

mp.mp.prec = 1400  # more than the bits before the point of the largest angle

FUNCTIONS = {
    "i0e": lambda x: mp.besseli(0, x) * mp.exp(-x),
    "i1e": lambda x: mp.besseli(1, x) * mp.exp(-x),
    "polygamma": lambda n, x: mp.psi(int(n), x),
    "igamma": lambda a, x: mp.gammainc(a, 0, x, regularized=True),
    "igammac": lambda a, x: mp.gammainc(a, x, mp.inf, regularized=True),
    "betainc": lambda a, b, x: mp.betainc(a, b, 0, x, regularized=True),
}
OF_FEW_BITS = {"zeta", "polygamma", "igamma", "igammac", "betainc", "erfinv", "loggamma", "digamma"}


def two_doubles(value: mp.mpf) -> list[str]:
    high = float(value)
    return [high.hex(), float(value - mp.mpf(high)).hex() if abs(high) < mp.inf else "0x0.0p+0"]


def main() -> None:
    """Write the values beside this file."""
    recorded = {}
    for name, (theirs, operands, _) in CASES.items():
        fn = FUNCTIONS.get(theirs) or getattr(mp, theirs)
        with mp.workprec(300 if theirs in OF_FEW_BITS else 1400):
            exact = [fn(*map(mp.mpf, map(float, point))) for point in zip(*operands, strict=True)]
        recorded[name] = [two_doubles(value) for value in exact]
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(v)}" for name, v in recorded.items())
    Path(__file__).with_name("mpmath_functions.json").write_text(
        f'{{"mpmath": {json.dumps(mp.__version__)}, "values": {{\n{lines}\n}}}}\n', encoding="utf-8"
    )


if __name__ == "__main__":
    main()
