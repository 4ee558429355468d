// Pooling, one thread an element of the result.

// The first of the greatest elements of each window, and its tap. NaN is greater than all.
template <class T, class S, class I>
void max_pool(const S *in, S *out, I *index, Images x, Images y, Images taps, Window window) {
    int64 count = y.count(), i = (int64)blockIdx.x * blockDim.x + threadIdx.x;
    for (; i < count; i += (int64)gridDim.x * blockDim.x) {
        int64 place[5], at[5];
        y.at(i, place);
        at[0] = place[0], at[1] = place[1];
        int64 best = -1;
        T most = 0;
        S element = S();
        for (int64 k = 0; k < window.taps(); k++) {
            if (!window.seen(place, k, x, at)) continue;
            S found = in[x.offset(at)];
            T value = load(found);
            bool wins = best < 0 || value > most || (value != value && most == most);
            if (wins) best = k, most = value, element = found;
        }
        out[y.offset(place)] = element;
        index[taps.offset(place)] = (I)best;
    }
}

template <class T, class S, class I>
void max_pool_grad(const S *grad, const I *index, S *out, Images dy, Images taps, Images dx,
    Window window) {
    int64 count = dx.count(), i = (int64)blockIdx.x * blockDim.x + threadIdx.x;
    for (; i < count; i += (int64)gridDim.x * blockDim.x) {
        int64 at[5], place[5];
        dx.at(i, at);
        place[0] = at[0], place[1] = at[1];
        T sum = 0;
        // The last tap is that of the first window.
        for (int64 k = window.taps(); k-- > 0;) {
            if (!window.seeing(at, k, dy, place)) continue;
            if ((int64)index[taps.offset(place)] == k) sum += T(load(grad[dy.offset(place)]));
        }
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
        int64 place[5], at[5];
        y.at(i, place);
        at[0] = place[0], at[1] = place[1];
        T sum = 0;
        for (int64 k = 0; k < window.taps(); k++) {
            if (window.seen(place, k, x, at)) sum += T(load(in[x.offset(at)]));
        }
        store(out[y.offset(place)], sum / T(mean.of(place, x, window)));
    }
}

template <class T, class S>
void avg_pool_grad(const S *grad, S *out, Images dy, Images dx, Window window, Mean mean) {
    int64 count = dx.count(), i = (int64)blockIdx.x * blockDim.x + threadIdx.x;
    for (; i < count; i += (int64)gridDim.x * blockDim.x) {
        int64 at[5], place[5];
        dx.at(i, at);
        place[0] = at[0], place[1] = at[1];
        T sum = 0;
        for (int64 k = window.taps(); k-- > 0;) {
            if (!window.seeing(at, k, dy, place)) continue;
            sum += T(load(grad[dy.offset(place)])) / T(mean.of(place, dx, window));
        }
        store(out[dx.offset(at)], sum);
    }
}
