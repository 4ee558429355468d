// Batch normalisation: one block a channel for sums, one thread an element to apply them. P is the
// type of parameters, in which elements are computed; sums are of doubles.

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

// The mean and the biased variance of each channel, and what applies them.
template <class P, class S, class Walk>
void batch_statistics(const S *x, Channel<const P> scale, Channel<const P> bias, Channel<P> mean,
    Channel<P> var, Channel<P> factor, Channel<P> term, const Walk &rest, int64 count, int64 channels,
    int64 step, double eps) {
    for (int64 c = blockIdx.x; c < channels; c += gridDim.x) {
        const S *own = x + c * step;
        double sum = 0;
        for (int64 i = threadIdx.x; i < count; i += blockDim.x) sum += load(own[rest.at(i)]);
        double middle = combined(sum, added<double>) / count;
        double squares = 0;
        for (int64 i = threadIdx.x; i < count; i += blockDim.x) {
            double d = load(own[rest.at(i)]) - middle;
            squares += d * d;
        }
        double spread = combined(squares, added<double>) / count;
        if (threadIdx.x == 0) {
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

// The gradient; statistics that are constants (FIXED) pass none.
template <class P, bool FIXED, class S, class Walk, class Passes>
void batch_gradient(const S *grad, const S *in, Channel<const P> scale, Channel<const P> mean,
    Channel<const P> var, S *dx, Channel<P> dscale, Channel<P> dbias, const Walk &rest, int64 count,
    int64 channels, int64 step_dy, int64 step_x, int64 step_dx, double eps, Passes passes) {
    for (int64 c = blockIdx.x; c < channels; c += gridDim.x) {
        double middle = mean[c], inverse = 1 / sqrt((double)var[c] + eps);
        double sum = 0, product = 0;
        for (int64 i = threadIdx.x; i < count; i += blockDim.x) {
            int64 at[3];
            rest.at(i, at);
            P x = load(in[c * step_x + at[1]]);
            double dy = passes(load(grad[c * step_dy + at[0]]), x, c);
            sum += dy;
            product += dy * ((double)x - middle);
        }
        sum = combined(sum, added<double>);
        product = combined(product, added<double>) * inverse;
        if (threadIdx.x == 0) {
            dbias[c] = P(sum);
            dscale[c] = P(product);
        }
        double factor = (double)scale[c] * inverse;
        P slope = P(factor), shift = FIXED ? P(0) : P(factor * sum / count);
        P tilt = FIXED ? P(0) : P(factor * inverse * product / count);
        for (int64 i = threadIdx.x; i < count; i += blockDim.x) {
            int64 at[3];
            rest.at(i, at);
            P x = load(in[c * step_x + at[1]]);
            P dy = passes(load(grad[c * step_dy + at[0]]), x, c);
            store(dx[c * step_dx + at[2]], P(dy * slope - shift - (x - (P)mean[c]) * tilt));
        }
    }
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
