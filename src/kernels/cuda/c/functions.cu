// Functions of one variable of the types that are computed in, and slopes for their gradients.

#define TWO_OVER_SQRT_PI 1.1283791670955126
#define ONE_OVER_SQRT_2PI 0.3989422804014327
#define ONE_OVER_SQRT_2 0.7071067811865476

template <class T> T upward(T x) { if constexpr (is_float<T>) return ceil(x); else return x; }
template <class T> T downward(T x) { if constexpr (is_float<T>) return floor(x); else return x; }
template <class T> T half_away(T x) { if constexpr (is_float<T>) return round(x); else return x; }
template <class T> T half_even(T x) { if constexpr (is_float<T>) return rint(x); else return x; }

template <class T> T relu(T x) { return x <= 0 ? T(0) : x; }

// A bound that is NaN is absent. Those of integers are whole, and may lie beyond their range.
template <class T> T clip(T x, double min, double max) {
    if constexpr (is_float<T>) {
        T above = x < T(min) ? T(min) : x;
        return above > T(max) ? T(max) : above;
    } else {
        T above = min != min ? x : larger(x, converted<T>(min));
        return max != max ? above : smaller(above, converted<T>(max));
    }
}

// 2 x, without doubling a factor of x, which could overflow first.
template <class T> T twice(T x) { return x + x; }

// a x, but 0 and not NaN for 0 times infinity.
template <class T> T scaled(T a, T x) { return a == 0 && x == x ? T(0) : a * x; }

// dy / (x x + 1), without overflow.
template <class T> T atan_gradient(T dy, T x) {
    return fabs(x) > T(1e9) ? dy / x / x : dy / fma(x, x, T(1));
}

// The root of x x + 1, without overflow.
template <class T> T asinh_slope(T x) {
    return fabs(x) > T(1e9) ? T(fabs(x)) : T(sqrt(fma(x, x, T(1))));
}

template <class T> T softsign(T x) {
    T a = fabs(x);
    return a == T(1) / T(0) ? copysign(T(1), x) : x / (T(1) + a);
}
template <class T> T softsign_gradient(T dy, T x) {
    T d = T(1) + fabs(x);
    return dy / d / d;
}

// Neither exponential overflows, and the smaller of two results is exact.
template <class T> T sigmoid(T x) {
    T e = exp(-fabs(x));
    return (x < 0 ? e : T(1)) / (T(1) + e);
}
template <class T> T softplus(T x) { return (x < 0 ? T(0) : x) + log1p(exp(-fabs(x))); }

// From there on silu and gelu are x or 0, and infinities must not be multiplied by zeros.
template <class T> T within(T x) { return x < T(-1e4) ? T(-1e4) : x > T(1e4) ? T(1e4) : x; }

template <class T> T silu(T x) {
    // The product with a denormal sigmoid would lose digits.
    T e = exp(-fabs(x));
    return x < T(-1e4) ? T(-0.0) : x < 0 ? x * e / (1 + e) : x / (1 + e);
}
template <class T> T silu_slope(T wide) {
    T x = within(wide), s = sigmoid(x);
    return s * fma(x, sigmoid(-x), T(1));
}

// e^(-x x share), with the rounding error of the square, which matters as the function is steep.
template <class T> T bell(T x, T share) {
    T a = fabs(x) > T(1e4) ? T(1e4) : x;
    T square = a * a, rest = fma(a, a, -square);
    T e = exp(-share * square);
    return fma(-share * rest, e, e);
}
template <class T> T gauss(T x) { return bell(x, T(1)); }
template <class T> T density(T x) { return T(ONE_OVER_SQRT_2PI) * bell(x, T(0.5)); }

template <class T> T gelu(T x) { return x < T(-1e4) ? T(-0.0) : x > T(1e4) ? x : x * normcdf(x); }
template <class T> T gelu_slope(T wide) {
    T x = within(wide);
    return normcdf(x) + x * density(x);
}

template <class T> T log_ndtr(T x) {
    T tail = T(0.5) * erfcx(T(fabs(x) * T(ONE_OVER_SQRT_2)));
    return x < 0 ? log(tail) - T(0.5) * x * x : log1p(T(0) - normcdf(-x));
}
template <class T> T log_ndtr_slope(T x) {
    T tail = T(0.5) * erfcx(T(fabs(x) * T(ONE_OVER_SQRT_2)));
    return x < 0 ? T(ONE_OVER_SQRT_2PI) / tail : density(x) / normcdf(x);
}
