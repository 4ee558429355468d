// Types of elements, and arithmetic as NumPy defines it. Every kernel begins with this text.

typedef signed char int8;
typedef unsigned char uint8;
typedef short int16;
typedef unsigned short uint16;
typedef int int32;
typedef unsigned int uint32;
typedef long long int64;
typedef unsigned long long uint64;

// Halves are kept as bits and computed with as float; any byte but 0 is true.
struct float16 { uint16 bits; };
struct bfloat16 { uint16 bits; };
struct boolean { uint8 byte; };

template <class T> constexpr bool is_float = false;
template <> constexpr bool is_float<float> = true;
template <> constexpr bool is_float<double> = true;

// Reading an element as the type that it is computed in.
template <class T> T load(T element) { return element; }
inline float load(float16 element) { return half_to_float(element.bits); }
inline float load(bfloat16 element) { return __uint_as_float((uint32)element.bits << 16); }
inline bool load(boolean element) { return element.byte != 0; }

// The nearest element, ties to even; NaN stays NaN.
inline float16 element_of(float value, float16) { return {float_to_half(value)}; }
inline bfloat16 element_of(float value, bfloat16) {
    uint32 bits = __float_as_uint(value);
    uint32 nearest = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
    return {(uint16)(value != value ? bits >> 16 | 0x40 : nearest)};
}
inline boolean element_of(bool value, boolean) { return {(uint8)value}; }
template <class T> T element_of(T value, T) { return value; }

template <class S, class T> void store(S &place, T value) { place = element_of(value, S()); }

// What reading a value again would give, once it is stored as S.
template <class S, class T> T stored(T value) { return load(element_of(value, S())); }

template <class T> bool truth(T x) { return x != 0; }

// Integers wrap: their bits are computed with, where overflow is defined.
template <class T> T plus(T a, T b) {
    if constexpr (is_float<T>) return a + b;
    else return T((uint64)a + (uint64)b);
}
template <class T> T minus(T a, T b) {
    if constexpr (is_float<T>) return a - b;
    else return T((uint64)a - (uint64)b);
}
template <class T> T times(T a, T b) {
    if constexpr (is_float<T>) return a * b;
    else return T((uint64)a * (uint64)b);
}
template <class T> T negative(T x) {
    if constexpr (is_float<T>) return -x;
    else return T(0 - (uint64)x);
}
template <class T> T magnitude(T x) {
    if constexpr (is_float<T>) return fabs(x);
    else return x < 0 ? negative(x) : x;
}
// NaN, or positive 0 for either zero.
template <class T> T sign(T x) { return x > 0 ? T(1) : x < 0 ? T(-1) : T(x + T(0)); }

// The comparison with itself finds a NaN.
template <class T> T larger(T a, T b) { return a > b || a != a ? a : b; }
template <class T> T smaller(T a, T b) { return a < b || a != a ? a : b; }

// 0 where an integer b is negative.
template <class T> T power(T a, T b) {
    if constexpr (is_float<T>) return pow(a, b);
    else {
        T product = 1, square = a;
        for (T left = b; left > 0; left >>= 1) {
            product = left & 1 ? times(square, product) : product;
            square = times(square, square);
        }
        return b < 0 ? T(0) : product;
    }
}

// Quotients round towards minus infinity, remainders have the divisor's sign; 0 for an integer
// divisor 0. The least integer divided by -1 wraps to itself.
template <class T> T floor_over(T a, T b) {
    if constexpr (is_float<T>) {
        T rest = fmod(a, b), quotient = a / b;
        bool turned = rest != 0 && (rest < 0) != (b < 0);
        // The dividend is a multiple of b, so the quotient only needs rounding, as in NumPy.
        T near = (a - rest) / b - (turned ? T(1) : T(0)), below = floor(near);
        T whole = near - below > T(0.5) ? below + T(1) : below;
        return b == 0 ? quotient : whole == 0 ? copysign(whole, quotient) : whole;
    } else {
        if (b == 0) return 0;
        if (b == T(-1) && T(-1) < 0) return negative(a);
        return T(a / b - (a % b != 0 && (a < 0) != (b < 0)));
    }
}
template <class T> T modulo(T a, T b) {
    if constexpr (is_float<T>) {
        T rest = fmod(a, b);
        bool turned = rest != 0 && (rest < 0) != (b < 0);
        return rest == 0 ? copysign(rest, b) : turned ? rest + b : rest;
    } else {
        if (b == 0 || (b == T(-1) && T(-1) < 0)) return 0;
        T rest = a % b;
        return rest != 0 && (rest < 0) != (b < 0) ? plus(rest, b) : rest;
    }
}

// None or the sign alone is left where b is not from 0 to the number of bits.
template <class T> T shifted_left(T a, T b) {
    return b < 0 || (uint64)b >= 8 * sizeof(T) ? T(0) : T((uint64)a << b);
}
template <class T> T shifted_right(T a, T b) {
    return b >= 0 && (uint64)b < 8 * sizeof(T) ? T(a >> b) : T(a < 0 ? -1 : 0);
}

// Conversion as ONNX Cast has it: to integers truncating, clamped to their range, NaN to 0;
// integers wrap.
template <class To, class From> To converted(From x) {
    if constexpr (is_float<From> && !is_float<To> && sizeof(To) < 8) {
        const int64 least = To(-1) < 0 ? -((int64)1 << (8 * sizeof(To) - 1)) : 0;
        const int64 most = least + ((int64)1 << 8 * sizeof(To)) - 1;
        return x != x ? To(0) : x <= From(least) ? To(least) : x >= From(most) ? To(most) : To(x);
    } else if constexpr (is_float<From> && !is_float<To>) {
        const From range = From(9223372036854775808.0) * (To(-1) < 0 ? 1 : 2);
        const To most = To(-1) < 0 ? To(~(uint64)0 >> 1) : To(~(uint64)0);
        const To least = To(-1) < 0 ? To((uint64)1 << 63) : To(0);
        return x != x ? To(0) : x >= range ? most : x <= From(least) ? least : To(x);
    } else {
        return To(x);
    }
}

// The float towards zero, whose last digit says if anything is lost: rounding it to a half gives
// what rounding the number itself would.
inline float odd(float x) { return x; }
inline float odd(double x) {
    float nearest = (float)x;
    if (nearest == x || x != x) return nearest;
    uint32 bits = __float_as_uint(nearest);
    return __uint_as_float((fabs((double)nearest) > fabs(x) ? bits - 1 : bits) | 1);
}
template <class T> float odd(T x) {
    uint64 size = x < 0 ? 0 - (uint64)x : (uint64)x;
    float scale = 1;
    for (; size >> 24; scale *= 2) size = size >> 1 | (size & 1);
    return (x < 0 ? -scale : scale) * (float)size;
}

// Changing the type of an element in memory.
template <class To, class From> void convert(To &place, From element) {
    place = converted<To>(load(element));
}
template <class From> void convert(float16 &place, From element) {
    place = element_of(odd(load(element)), float16());
}
template <class From> void convert(bfloat16 &place, From element) {
    place = element_of(odd(load(element)), bfloat16());
}
template <class From> void convert(boolean &place, From element) {
    place = element_of(truth(load(element)), boolean());
}

// Whether T is a type of integers, or bool, that has this number.
template <class T> bool is_in_range(double x) {
    const double half = (double)((uint64)1 << (8 * sizeof(T) - 1));
    const bool is_bool = T(2) == T(1), is_signed = T(-1) < T(0);
    double high = is_bool ? 2 : is_signed ? half : 2 * half;
    return x == trunc(x) && x >= (is_signed ? -half : 0) && x < high;
}

// Whether the dtype S has this number; floats may round to floats, but not to an infinity.
template <class S, class From> bool holds(From x) {
    S element;
    convert(element, x);
    auto y = load(element);
    if constexpr (is_float<From> && is_float<decltype(y)>) return x - x != 0 || y - y == 0;
    else if constexpr (is_float<From>) return is_in_range<decltype(y)>(x);
    else if constexpr (is_float<decltype(y)>) return is_in_range<From>(y) && (From)y == x;
    else return (y < 0) == (x < 0) && (uint64)y == (uint64)x;
}

// Whether x is the number of one of `size` entries, where negative ones may count from the end; any
// whole number where the size is negative.
template <class T> bool is_entry(T x, int64 size, bool wraps) {
    if constexpr (is_float<T>) {
        if (x != trunc(x) || fabs(x) >= T(9223372036854775808.0)) return false;
    }
    int64 index = (int64)x, entry = wraps && index < 0 ? index + size : index;
    return size < 0 || (entry >= 0 && entry < size);
}
