// Batch normalisation: blocks sum up chunks of a channel, whose lengths depend on shapes alone, one
// block a channel joins them, and one thread an element applies them. P is the type of parameters,
// in which elements are computed; sums are of doubles.

// Tensors with one element a channel, and the steps between them.
template <class P> struct Channel {
    P *first;
    int64 step;
    P &operator[](int64 c) const { return first[c * step]; }
};
template <class P> Channel<P> channel(P *first, int64 step) { return {first, step}; }

// The term compensates for the rounding of the mean.
template <class P>
void keep_statistics(int64 c, double mean, double var, double eps, P scale, P bias, Channel<P> means,
    Channel<P> vars, Channel<P> factors, Channel<P> terms) {
    double factor = (double)scale / sqrt(var + eps);
    double lost = ((double)P(mean) - mean) * factor;
    means[c] = P(mean);
    vars[c] = P(var);
    factors[c] = P(factor);
    terms[c] = P((double)bias + (lost - lost == 0 ? lost : 0));
}

// How many numbers there are, their sum, and the squares of their distances from their mean.
struct Moments { double count, sum, squares; };

// Those of two sets together (Chan, Golub and LeVeque 1983).
inline Moments joined(Moments a, Moments b) {
    if (a.count == 0 || b.count == 0) return a.count == 0 ? b : a;
    double apart = b.sum / b.count - a.sum / a.count, count = a.count + b.count;
    return {count, a.sum + b.sum, a.squares + b.squares + apart * apart * a.count * b.count / count};
}

// The channels' elements, and the chunks that they are cut into.
struct Chunks { int64 channels, count, length, number; };

template <class S, class Walk>
void chunk_moments(const S *x, Moments *to, const Walk &rest, Chunks of, int64 step) {
    for (int64 task = blockIdx.x; task < of.channels * of.number; task += gridDim.x) {
        const S *own = x + task / of.number * step;
        int64 first = task % of.number * of.length;
        int64 last = first + of.length < of.count ? first + of.length : of.count;
        double sum = 0, squares = 0;
        for (int64 i = first + threadIdx.x; i < last; i += blockDim.x) sum += load(own[rest.at(i)]);
        sum = combined(sum, added<double>);
        double middle = sum / (last - first);
        for (int64 i = first + threadIdx.x; i < last; i += blockDim.x) {
            double d = load(own[rest.at(i)]) - middle;
            squares += d * d;
        }
        squares = combined(squares, added<double>);
        if (threadIdx.x == 0) to[task] = {(double)(last - first), sum, squares};
    }
}

// The mean and the biased variance of each channel, and what applies them.
template <class P>
void batch_statistics(const Moments *moments, Channel<const P> scale, Channel<const P> bias,
    Channel<P> mean, Channel<P> var, Channel<P> factor, Channel<P> term, Chunks of, double eps) {
    for (int64 c = blockIdx.x; c < of.channels; c += gridDim.x) {
        Moments own = {0, 0, 0};
        for (int64 i = threadIdx.x; i < of.number; i += blockDim.x) {
            own = joined(own, moments[c * of.number + i]);
        }
        Moments all = combined(own, [](Moments a, Moments b) { return joined(a, b); });
        if (threadIdx.x == 0) {
            double middle = all.sum / of.count, spread = all.squares / of.count;
            keep_statistics(c, middle, spread, eps, (P)scale[c], (P)bias[c], mean, var, factor, term);
        }
    }
}

// The factors of given variances.
template <class P>
void batch_factor(Channel<const P> scale, Channel<const P> var, Channel<P> factor, int64 channels,
    double eps) {
    for (int64 c = blockIdx.x * blockDim.x + threadIdx.x; c < channels; c += gridDim.x * blockDim.x) {
        factor[c] = P((double)scale[c] / sqrt((double)var[c] + eps));
    }
}

template <class P> P normalized(P x, P mean, P factor, P term) { return (x - mean) * factor + term; }

// What of dy passes: all of it, or where the rectified result was positive or NaN.
template <class P> struct All {
    P operator()(P dy, P, int64) const { return dy; }
};
template <class P> struct Rectified {
    Channel<const P> mean, factor, term;
    P operator()(P dy, P x, int64 c) const {
        return normalized<P>(x, mean[c], factor[c], term[c]) <= 0 ? P(0) : dy;
    }
};

// The sums of a chunk's dy, and of its products with the distances from the mean.
struct Sums { double dy, product; };
inline Sums joined(Sums a, Sums b) { return {a.dy + b.dy, a.product + b.product}; }

template <class P, class S, class Walk, class Passes>
void chunk_gradient(const S *grad, const S *in, Channel<const P> mean, Sums *to, const Walk &rest,
    Chunks of, int64 step_dy, int64 step_x, Passes passes) {
    for (int64 task = blockIdx.x; task < of.channels * of.number; task += gridDim.x) {
        int64 c = task / of.number, first = task % of.number * of.length;
        int64 last = first + of.length < of.count ? first + of.length : of.count;
        double middle = mean[c];
        Sums own = {0, 0};
        for (int64 i = first + threadIdx.x; i < last; i += blockDim.x) {
            int64 at[2];
            rest.at(i, at);
            P x = load(in[c * step_x + at[1]]);
            double dy = passes(load(grad[c * step_dy + at[0]]), x, c);
            own = joined(own, {dy, dy * ((double)x - middle)});
        }
        Sums all = combined(own, [](Sums a, Sums b) { return joined(a, b); });
        if (threadIdx.x == 0) to[task] = all;
    }
}

// The gradient of x is dy * slope - shift - (x - mean) * tilt.
template <class P> struct Line { P slope, shift, tilt; };

// The gradients of scale and bias, and the line of each channel; statistics that are constants
// (FIXED) pass none.
template <class P, bool FIXED>
void batch_gradient(Channel<const P> scale, Channel<const P> var, const Sums *sums, Channel<P> dscale,
    Channel<P> dbias, Line<P> *lines, Chunks of, double eps) {
    for (int64 c = blockIdx.x; c < of.channels; c += gridDim.x) {
        Sums own = {0, 0};
        for (int64 i = threadIdx.x; i < of.number; i += blockDim.x) {
            own = joined(own, sums[c * of.number + i]);
        }
        Sums all = combined(own, [](Sums a, Sums b) { return joined(a, b); });
        if (threadIdx.x) continue;
        double inverse = 1 / sqrt((double)var[c] + eps), product = all.product * inverse;
        double factor = (double)scale[c] * inverse;
        dbias[c] = P(all.dy);
        dscale[c] = P(product);
        lines[c].slope = P(factor);
        lines[c].shift = FIXED ? P(0) : P(factor * all.dy / of.count);
        lines[c].tilt = FIXED ? P(0) : P(factor * inverse * product / of.count);
    }
}

template <class P> P on_line(P dy, P x, P mean, Line<P> line) {
    return dy * line.slope - line.shift - (x - mean) * line.tilt;
}

// Weights and a bias of channels along an axis, which do what follows a convolution.
template <class T>
void folded_bias(Channel<const T> scale, Channel<const T> bias, Channel<const T> mean,
    Channel<const T> var, const T *own, int64 own_step, Channel<T> to, int64 channels, double eps) {
    for (int64 c = blockIdx.x * blockDim.x + threadIdx.x; c < channels; c += gridDim.x * blockDim.x) {
        double factor = (double)scale[c] / sqrt((double)var[c] + eps);
        double b = own ? (double)own[c * own_step] : 0;
        to[c] = T((double)bias[c] + (b - (double)mean[c]) * factor);
    }
}
