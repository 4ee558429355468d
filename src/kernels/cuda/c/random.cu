// Random numbers: Philox4x32-10 (Salmon et al. 2011), a function of a key and the number of a block
// of four words.

struct Words {
    uint32 word[4];
    // Word `i`, which is not known before: an array would be put into memory for it.
    uint32 at(int i) const { return i < 2 ? (i ? word[1] : word[0]) : i == 2 ? word[2] : word[3]; }
};

inline Words philox(const int64 *state, uint64 offset, uint64 block) {
    // The position carries into the third word.
    uint64 start = (uint64)state[1] + offset, low = start + block;
    uint32 key[2] = {(uint32)state[0], (uint32)((uint64)state[0] >> 32)};
    Words w = {{(uint32)low, (uint32)(low >> 32), low < start ? 1u : 0u, 0}};
    for (int round = 0; round < 10; round++) {
        uint64 a = (uint64)w.word[0] * 0xD2511F53u, b = (uint64)w.word[2] * 0xCD9E8D57u;
        w = {{(uint32)(b >> 32) ^ w.word[1] ^ key[0], (uint32)b,
            (uint32)(a >> 32) ^ w.word[3] ^ key[1], (uint32)a}};
        key[0] += 0x9E3779B9u, key[1] += 0xBB67AE85u;
    }
    return w;
}

// Numbers of a block in [0, 1): four floats, or two doubles.
inline float unit(uint32 word) { return (float)(word >> 8) * 5.9604644775390625e-8f; }
inline uint64 bits_53(uint32 high, uint32 low) { return ((uint64)high << 32 | low) >> 11; }
inline double unit(uint32 high, uint32 low) { return (double)bits_53(high, low) * 1.1102230246251565e-16; }

inline float uniform_of(Words w, int i, float) { return unit(w.word[i]); }
inline double uniform_of(Words w, int i, double) { return unit(w.word[2 * i], w.word[2 * i + 1]); }

// Box and Muller, of two uniform numbers; the first is in (0, 1].
inline float normal_of(Words w, int i, float) {
    int pair = i & 2;
    float u = ((float)w.word[pair] + 1.0f) * 2.3283064365386963e-10f, radius = sqrt(-2 * log(u));
    float turns = 2 * unit(w.word[pair + 1]);
    return radius * (i & 1 ? sinpi(turns) : cospi(turns));
}
inline double normal_of(Words w, int i, double) {
    double u = (double)(bits_53(w.word[0], w.word[1]) + 1) * 1.1102230246251565e-16;
    double radius = sqrt(-2 * log(u)), turns = 2 * unit(w.word[2], w.word[3]);
    return radius * (i & 1 ? sinpi(turns) : cospi(turns));
}

// From `low` to the largest number below `high`: rounding reaches neither beyond.
template <class T> struct Uniform {
    T low, high, most;
    T operator()(Words w, int i) const {
        T u = uniform_of(w, i, T()), inside = low * (T(1) - u) + high * u;
        T below = inside < most ? inside : most;
        return below < low ? low : below;
    }
};
template <class T> struct Normal {
    T mean, deviation;
    T operator()(Words w, int i) const { return mean + deviation * normal_of(w, i, T()); }
};
// True where a word is below the bound, of 2^32.
struct Bernoulli {
    uint64 bound;
    bool operator()(Words w, int i) const { return w.at(i) < bound; }
};
