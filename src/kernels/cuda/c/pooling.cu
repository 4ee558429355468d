// Pooling, one thread an element of the result.

// The first of the greatest elements of each window, and its tap. NaN is greater than all.
template <class T, class S, class I>
void max_pool(const S *in, S *out, I *index, Images x, Images y, Images taps, Window window) {
    int64 count = y.count(), i = (int64)blockIdx.x * blockDim.x + threadIdx.x;
    for (; i < count; i += (int64)gridDim.x * blockDim.x) {
        int64 place[5], best = -1;
        y.at(i, place);
        T most = 0;
        S element = S();
        window.each_seen(place, x, [&](int64 k, int64 (&at)[5]) {
            S found = in[x.offset(at)];
            T value = load(found);
            bool wins = best < 0 || value > most || (value != value && most == most);
            if (wins) best = k, most = value, element = found;
        });
        out[y.offset(place)] = element;
        index[taps.offset(place)] = (I)best;
    }
}

template <class T, class S, class I>
void max_pool_grad(const S *grad, const I *index, S *out, Images dy, Images taps, Images dx,
    Window window) {
    int64 count = dx.count(), i = (int64)blockIdx.x * blockDim.x + threadIdx.x;
    for (; i < count; i += (int64)gridDim.x * blockDim.x) {
        int64 at[5];
        dx.at(i, at);
        T sum = 0;
        window.each_seeing(at, dy, [&](int64 k, int64 (&place)[5]) {
            if ((int64)index[taps.offset(place)] == k) sum += T(load(grad[dy.offset(place)]));
        });
        store(out[dx.offset(at)], sum);
    }
}

// What the sum of a window is divided by.
struct Mean {
    int64 divisor, padded;
    int64 of(const int64 (&place)[5], const Images &image, const Window &window) const {
        return divisor ? divisor : window.within(place, image, padded);
    }
};

template <class T, class S>
void avg_pool(const S *in, S *out, Images x, Images y, Window window, Mean mean) {
    int64 count = y.count(), i = (int64)blockIdx.x * blockDim.x + threadIdx.x;
    for (; i < count; i += (int64)gridDim.x * blockDim.x) {
        int64 place[5];
        y.at(i, place);
        T sum = 0;
        window.each_seen(place, x, [&](int64, int64 (&at)[5]) {
            sum += T(load(in[x.offset(at)]));
        });
        store(out[y.offset(place)], sum / T(mean.of(place, x, window)));
    }
}

template <class T, class S>
void avg_pool_grad(const S *grad, S *out, Images dy, Images dx, Window window, Mean mean) {
    int64 count = dx.count(), i = (int64)blockIdx.x * blockDim.x + threadIdx.x;
    for (; i < count; i += (int64)gridDim.x * blockDim.x) {
        int64 at[5];
        dx.at(i, at);
        T sum = 0;
        window.each_seeing(at, dy, [&](int64, int64 (&place)[5]) {
            sum += T(load(grad[dy.offset(place)])) / T(mean.of(place, dx, window));
        });
        store(out[dx.offset(at)], sum);
    }
}
