"""Elementary functions to about 40 digits, as references for float64."""

import math
from collections.abc import Callable
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, InvalidOperation, localcontext
from fractions import Fraction

import numpy as np

CONTEXT = Context(prec=60, Emax=MAX_EMAX, Emin=MIN_EMIN, traps=[InvalidOperation])
TINY = Decimal("1e-25")
PI = Decimal("3.14159265358979323846264338327950288419716939937510582097494459230781640628620899")

Number = Decimal
Function = Callable[[Number], Number]


def series(first: Number, ratio: Callable[[int], Number]) -> Number:
    """`first (1 + r(1) (1 + r(2) (1 + ...)))` until nothing is added."""
    total = term = first
    n = 1
    while term and abs(term) > abs(total) * Decimal("1e-58"):
        term *= ratio(n)
        total += term
        n += 1
    return total


def odd(cubic: str | int, function: Function) -> Function:
    """An odd function: where cancellation would leave nothing, `x + cubic * x**3 / 6`."""

    def value(x: Number) -> Number:
        small = x + x**3 * Decimal(cubic) / 6
        return small if abs(x) < TINY else function(x)

    return value


def exp(x: Number) -> Number:
    return x.exp()


def log(x: Number) -> Number:
    return x.ln()


def expm1(x: Number) -> Number:
    return x + x * x / 2 if abs(x) < TINY else exp(x) - 1


def log1p(x: Number) -> Number:
    return x - x * x / 2 if abs(x) < TINY else log(1 + x)


def sin(x: Number) -> Number:
    x = x.remainder_near(2 * PI)
    return series(x, lambda n: -x * x / (2 * n * (2 * n + 1)))


def cos(x: Number) -> Number:
    x = x.remainder_near(2 * PI)
    return series(Decimal(1), lambda n: -x * x / (2 * n * (2 * n - 1)))


def atan(x: Number) -> Number:
    if abs(x) > 1:
        return (PI / 2).copy_sign(x) - atan(1 / x)
    for _ in range(4):
        x = x / (1 + (1 + x * x).sqrt())
    term, total, n = x, x, 1
    while abs(term) > Decimal("1e-58") * abs(total):
        term = -term * x * x
        n += 2
        total += term / n
    return 16 * total


def asin(x: Number) -> Number:
    if abs(x) == 1:
        return (PI / 2).copy_sign(x)
    return atan(x / ((1 - x) * (1 + x)).sqrt())


def acos(x: Number) -> Number:
    return 2 * asin(((1 - x) / 2).sqrt())


def sinh(x: Number) -> Number:
    return (exp(x) - exp(-x)) / 2


def cosh(x: Number) -> Number:
    return (exp(x) + exp(-x)) / 2


def tanh(x: Number) -> Number:
    return 1 - 2 / (exp(2 * x) + 1) if x > 0 else 2 / (exp(-2 * x) + 1) - 1


def asinh(x: Number) -> Number:
    return log(abs(x) + (x * x + 1).sqrt()).copy_sign(x)


def acosh(x: Number) -> Number:
    t = x - 1
    return 2 * asinh_any((t / 2).sqrt())


def atanh(x: Number) -> Number:
    return log((1 + x) / (1 - x)) / 2


def sigmoid(x: Number) -> Number:
    return 1 / (1 + exp(-x)) if x > 0 else exp(x) / (1 + exp(x))


def softplus(x: Number) -> Number:
    small = exp(-abs(x))
    rest = small - small * small / 2 if small < TINY else log(1 + small)
    return max(x, Decimal(0)) + rest


def erf(x: Number) -> Number:
    return 1 - erfc(x) if x > 1 else -(1 - erfc(-x)) if x < -1 else _erf_series(x)


def _erf_series(x: Number) -> Number:
    first = 2 * x / PI.sqrt() * exp(-x * x)
    return series(first, lambda n: 2 * x * x / (2 * n + 1))


def erfc(x: Number) -> Number:
    """By a continued fraction where it is small, else from the series of erf."""
    if x < -4:
        return 2 - erfc(-x)
    if x < 4:
        with localcontext(CONTEXT) as more:
            more.prec = 90
            return 1 - _erf_series(x)
    q = Decimal(0)
    for depth in range(400, 0, -1):
        q = Decimal(depth) / 2 / (x + q)
    return exp(-x * x) / PI.sqrt() / (x + q)


def normal_cdf(x: Number) -> Number:
    return erfc(-x / Decimal(2).sqrt()) / 2


def density(x: Number) -> Number:
    return exp(-x * x / 2) / (2 * PI).sqrt()


def inverse(start: Callable[[float], float], function: Function, slope: Function) -> Function:
    """The inverse of an increasing function by Newton's method, from its value as a float."""

    def value(y: Number) -> Number:
        x = Decimal(start(float(y)))
        for _ in range(3 if x.is_finite() else 0):
            x -= (function(x) - y) / slope(x)
        return x

    return value


def erf_slope(x: Number) -> Number:
    return 2 / PI.sqrt() * exp(-x * x)


def log_normal_cdf(x: Number) -> Number:
    if x < -(10**8):
        return -x * x / 2 - log(-x * (2 * PI).sqrt()) - 1 / (x * x)
    tail = normal_cdf(-x)
    return -tail - tail * tail / 2 if tail < TINY else log(normal_cdf(x))


def log_normal_cdf_slope(x: Number) -> Number:
    return -x - 1 / x if x < -(10**8) else density(x) / normal_cdf(x)


def bernoulli(count: int) -> list[Number]:
    """The Bernoulli numbers B(2), B(4), ..."""
    found = [Fraction(1)]
    for m in range(1, 2 * count + 1):
        terms = (math.comb(m + 1, k) * b for k, b in enumerate(found))
        found.append(-sum(terms, Fraction(0)) / (m + 1))
    return [Decimal(b.numerator) / b.denominator for b in found[2::2]]


with localcontext(CONTEXT):
    BERNOULLI = bernoulli(24)
#: Where Stirling's series is exact to 50 digits.
FAR = 60


def climbed(x: Number) -> tuple[list[Number], Number]:
    """The numbers x, x + 1, ... below `FAR`, and the first one that is not."""
    steps = [x + k for k in range(max(FAR - int(min(x, Decimal(FAR))), 0))]
    return steps, x + len(steps)


def lgamma(x: Number) -> Number:
    """Of positive numbers; others by reflection."""
    if not x:
        return Decimal("inf")
    if x < 0:
        return log(PI / abs(sin(PI * x.remainder_near(1)))) - lgamma(1 - x)
    steps, z = climbed(x)
    terms = (b / (2 * j * (2 * j - 1) * z ** (2 * j - 1)) for j, b in enumerate(BERNOULLI, 1))
    stirling = (z - Decimal("0.5")) * log(z) - z + log(2 * PI) / 2 + sum(terms)
    return stirling - sum(map(log, steps))


def digamma(x: Number) -> Number:
    """Of positive numbers; others by reflection."""
    if not x:
        return -Decimal("inf")
    if x < 0:
        angle = PI * x.remainder_near(1)
        return digamma(1 - x) - PI * cos(angle) / sin(angle)
    steps, z = climbed(x)
    terms = (b / (2 * j * z ** (2 * j)) for j, b in enumerate(BERNOULLI, 1))
    return log(z) - 1 / (2 * z) - sum(terms) - sum(1 / y for y in steps)


def polygamma(n: int) -> Function:
    """The derivatives of digamma, by the same series differentiated."""

    def value(x: Number) -> Number:
        if not x:
            return Decimal("inf").copy_sign((-1) ** (n + 1))
        steps, z = climbed(x)
        tail = math.factorial(n - 1) / z**n + math.factorial(n) / (2 * z ** (n + 1))
        for j, b in enumerate(BERNOULLI, 1):
            falling = Decimal(math.factorial(2 * j + n - 1)) / math.factorial(2 * j)
            tail += b * falling / z ** (2 * j + n)
        return (-1) ** (n + 1) * (tail + math.factorial(n) * sum(y ** -(n + 1) for y in steps))

    return value


asinh_any = odd(-1, asinh)
sinh_any = odd(1, sinh)
tanh_any = odd(-2, tanh)
atanh_any = odd(2, atanh)


def exact(function: Function, xs: np.ndarray) -> list[Number]:
    """The function of every element, in the precision of this file."""
    with localcontext(CONTEXT):
        return [function(Decimal(float(x))) for x in xs]


def ulps(got: np.ndarray, want: list[Number], scales: list[Number] | None = None) -> np.ndarray:
    """Errors in units in the last place of the expected value, or of a larger scale."""
    kind = got.dtype
    with localcontext(CONTEXT):
        made = []
        for y, w, s in zip(got, want, scales or want, strict=True):
            with np.errstate(over="ignore"):
                near = kind.type(float(max(abs(w), abs(s))))
            if np.isinf(near):
                made.append(0.0 if np.isinf(y) and (y > 0) == (w > 0) else np.inf)
                continue
            below = np.nextafter(np.finfo(kind).max, kind.type(0))  # the last number with a spacing
            near = min(max(near, np.finfo(kind).tiny), below)
            unit = Decimal(float(np.spacing(near)))
            made.append(float(abs(Decimal(float(y)) - w) / unit) if np.isfinite(y) else np.inf)
    return np.array(made)
