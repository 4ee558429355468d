// The derivatives of the logarithm of the gamma function, in float64: they climb to where a few
// terms of Stirling's series are exact.

inline double digamma_above(double y) {
    if (y > 1e40) return log(y);
    double z = y + 6, w = 1 / (z * z), climb = 0;
    for (int k = 0; k < 6; k++) climb += 1 / (y + k);
    double series = fma(w, fma(w, fma(w, fma(w, fma(w, -0.015009721392381136, 0.007368600572933729),
        -0.004163027686389495), 0.00396822104592352), -0.008333333195217837), 0.08333333333313964);
    return log(z) - 0.5 / z - w * series - climb;
}

template <class T> T digamma(T wide) {
    double x = wide;
    if (x == 0) return T(-1 / x);
    if (!(x < 0)) return T(digamma_above(x));
    // The reflection: psi(x) = psi(1 - x) - pi / tan(pi x).
    double turn = x - rint(x);
    return turn == 0 ? T(__longlong_as_double(0x7ff8000000000000)) :
        T(digamma_above(1 - x) - 3.141592653589793 * cospi(turn) / sinpi(turn));
}

// n! times the sum of (q + k)^-(n + 1) over all k from 0 on, for q > 0: terms one by one, and from
// where they fall slowly the formula of Euler and Maclaurin.
inline double scaled_zeta(double n, double q) {
    const double bernoulli[10] = {8.333333333333333e-2, -1.388888888888889e-3,
        3.306878306878307e-5, -8.267195767195768e-7, 2.0876756987868097e-8, -5.284190138687493e-10,
        1.3382536530684679e-11, -3.3896802963225827e-13, 8.586062056277845e-15,
        -2.174868698558062e-16};
    double s = n + 1;
    // A factor of each term's base, so that neither the factorial nor a power overflows alone.
    double unit = exp(lgamma(s) / s), terms = 0;
    int count = q < s + 10 ? int(ceil(s + 10 - q)) : 0;
    for (int k = count - 1; k >= 0; k--) terms += pow(unit / (q + k), s);
    double z = q + count, tail = 0, factor = n * s / (z * z);
    for (int j = 0; j < 10; j++) {
        tail += bernoulli[j] * factor;
        double next = s + 2 * j;
        factor *= (next + 1) / z * ((next + 2) / z);
    }
    return terms + pow(unit / z, n) * (unit / n) * (1 + n / (2 * z) + tail);
}

// Derivative n >= 1 of the digamma function.
template <class T> T polygamma(double n, T wide) {
    double x = wide, sign = fmod(n, 2) == 0 ? -1 : 1;
    if (x == 1 / 0.0) return T(sign * 0);
    if (x > 0) return T(sign * scaled_zeta(n, x));
    // Below 0 the terms are those near the pole at r = 0, those above it, and as many below it as
    // x is away from it.
    double r = x - rint(x), unit = exp(lgamma(n + 1) / (n + 1));
    double below = scaled_zeta(n, 1 - r) - scaled_zeta(n, 1 - x);
    double near = pow(fabs(unit / r), n + 1) * (r < 0 ? sign : 1);
    return T(sign * (near + scaled_zeta(n, 1 + r) + sign * below));
}
