"""Print cpp/ops/special_polynomials.h: fits by mpmath in 250 bits (`pip install mpmath`).

    python tests/cpp/ops/fit_special_functions.py > cpp/ops/special_polynomials.h

A fit interpolates at Chebyshev points, and is written in powers of u in [-1, 1]. Degrees are the
first ones whose last two coefficients are below 2^-56 of the function.
"""

from collections.abc import Callable

import mpmath as mp

mp.mp.prec = 250

ZERO_OF_DIGAMMA = mp.findroot(mp.digamma, mp.mpf("1.4616"))

HEAD = """// Fits of tests/cpp/ops/fit_special_functions.py, which wrote this file, in powers of u.
#pragma once

namespace samegrad::special {
"""


def erfc_scaled(t: mp.mpf) -> mp.mpf:
    """(x + 3) exp(x²) erfc(x) of t = (x - 3) / (x + 3)."""
    x = 3 * (1 + t) / (1 - t)
    return (x + 3) * mp.exp(x * x) * mp.erfc(x)


def log_gamma_without_zeros(x: mp.mpf) -> mp.mpf:
    """The logarithm of Γ(x), divided by (x - 1) (x - 2)."""
    return mp.loggamma(x) / ((x - 1) * (x - 2))


def digamma_without_zero(x: mp.mpf) -> mp.mpf:
    """The derivative of log Γ(x), divided by x minus its zero."""
    return mp.digamma(x) / (x - ZERO_OF_DIGAMMA)


def bessel_scaled(order: int) -> Callable[[mp.mpf], mp.mpf]:
    """exp(-x) I(x) / x^order."""

    def of_near(x: mp.mpf) -> mp.mpf:
        return mp.exp(-x) * mp.besseli(order, x) / x**order

    return of_near


def bessel_far(order: int) -> Callable[[mp.mpf], mp.mpf]:
    """√x exp(-x) I(x) of 1 / x."""

    def of_inverse(w: mp.mpf) -> mp.mpf:
        if w < mp.mpf(10) ** -4:  # Hankel's expansion, where the exponentials are too large
            odd = [4 * order**2 - (2 * k - 1) ** 2 for k in range(1, 25)]
            terms = [mp.mpf(1)]
            for k, o in enumerate(odd, 1):
                terms.append(-terms[-1] * o * w / (8 * k))
            return mp.fsum(terms) / mp.sqrt(2 * mp.pi)
        return mp.exp(-1 / w) * mp.besseli(order, 1 / w) / mp.sqrt(w)

    return of_inverse


def chebyshev(f: Callable[[mp.mpf], mp.mpf], degree: int) -> list[mp.mpf]:
    """Coefficients of the interpolation of `f` on [-1, 1]."""
    count = degree + 1
    angles = [mp.pi * (k + mp.mpf(1) / 2) / count for k in range(count)]
    values = [f(mp.cos(angle)) for angle in angles]
    coefficients = [
        2 * mp.fsum(y * mp.cos(j * a) for y, a in zip(values, angles, strict=True)) / count
        for j in range(count)
    ]
    coefficients[0] /= 2
    return coefficients


def powers(coefficients: list[mp.mpf]) -> list[mp.mpf]:
    """Sum of Chebyshev polynomials as coefficients of powers."""
    total = [mp.mpf(0)] * len(coefficients)
    last, this = [mp.mpf(0), mp.mpf(1)], [mp.mpf(1)]  # T₁ is also T₋₁
    for coefficient in coefficients:
        for i, t in enumerate(this):
            total[i] += coefficient * t
        following = [mp.mpf(0)] + [2 * t for t in this]
        for i, t in enumerate(last[: len(following)]):
            following[i] -= t
        last, this = this, following
    return total


def fit(f: Callable[[mp.mpf], mp.mpf], low: mp.mpf, high: mp.mpf) -> list[mp.mpf]:
    """Return the powers of u = (2 x - low - high) / (high - low)."""

    def mapped(u: mp.mpf) -> mp.mpf:
        return f((low + high) / 2 + (high - low) / 2 * u)

    least = min(abs(mapped(mp.mpf(k) / 20)) for k in range(-19, 20))
    for degree in range(8, 40):
        coefficients = chebyshev(mapped, degree)
        if abs(coefficients[-1]) + abs(coefficients[-2]) < least * mp.mpf(2) ** -56:
            return powers(coefficients)
    raise ValueError("no degree below 40 is enough")


def show(name: str, doc: str, coefficients: list[mp.mpf]) -> None:
    """Print one table."""
    print(f"// {doc}")
    print(f"inline constexpr double {name}[] = {{")
    for coefficient in coefficients:
        print(f"    {mp.nstr(coefficient, 20)},")
    print("};\n")


def main() -> None:
    """Print the header."""
    print(HEAD)
    low, high = (mp.mpf(1) / 2 - 3) / (mp.mpf(1) / 2 + 3), mp.mpf(27) / 33
    print("// u of t = (x - 3) / (x + 3), of x from 0.5 to 30.")
    print(f"inline constexpr double kErfcCentre = {mp.nstr((low + high) / 2, 20)};")
    print(f"inline constexpr double kErfcScale = {mp.nstr(2 / (high - low), 20)};")
    show("kErfc", "(x + 3) exp(x²) erfc(x).", fit(erfc_scaled, low, high))
    doc = "The logarithm of Γ(x), divided by (x - 1) (x - 2): "
    three = mp.mpf(3)
    show(
        "kLogGammaLow",
        doc + "x from 0.75 to 1.5.",
        fit(log_gamma_without_zeros, three / 4, three / 2),
    )
    show("kLogGammaHigh", doc + "x from 1.5 to 3.", fit(log_gamma_without_zeros, three / 2, three))
    zero = mp.mpf(float(ZERO_OF_DIGAMMA))
    print("// The zero of digamma in two parts.")
    print(f"inline constexpr double kDigammaZero = {mp.nstr(zero, 20)};")
    print(f"inline constexpr double kDigammaZeroLow = {mp.nstr(ZERO_OF_DIGAMMA - zero, 20)};")
    doc = "digamma(x), divided by x minus that zero: x from 1 to 2."
    show("kDigamma", doc, fit(digamma_without_zero, mp.mpf(1), mp.mpf(2)))
    for order, power in (0, ""), (1, " / x"):
        doc = f"exp(-x) I(x){power} of order {order}: x from 0 to 8."
        show(f"kBessel{order}Near", doc, fit(bessel_scaled(order), mp.mpf(0), mp.mpf(8)))
        doc = f"√x exp(-x) I(x) of order {order} and of 1 / x, from 0 to 1 / 8."
        show(f"kBessel{order}Far", doc, fit(bessel_far(order), mp.mpf(0), mp.mpf(1) / 8))
    print("}  // namespace samegrad::special")


if __name__ == "__main__":
    main()
