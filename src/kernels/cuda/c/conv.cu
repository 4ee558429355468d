// Convolution and its gradients, with sums of T: one thread an element of the result, or one block
// an element of the weights. Weights are (O, C / groups, window).

struct Groups { int64 count; };

template <class T, class S>
void conv(const S *in, const S *weights, const S *bias, S *out, Images x, Images w, Images y,
    int64 bias_step, Window window, Groups groups) {
    int64 count = y.count(), i = (int64)blockIdx.x * blockDim.x + threadIdx.x;
    int64 inputs = w.extents[1], outputs = w.extents[0] / groups.count;
    for (; i < count; i += (int64)gridDim.x * blockDim.x) {
        int64 place[5];
        y.at(i, place);
        int64 group = place[1] / outputs;
        T sum = bias ? T(load(bias[place[1] * bias_step])) : T(0);
        window.each_seen(place, x, [&](int64 k, int64 (&at)[5]) {
            int64 of[5] = {place[1], 0};
            window.tap(k, (int64 (&)[3])of[2]);
            for (int64 c = 0; c < inputs; c++) {
                at[1] = group * inputs + c, of[1] = c;
                sum += T(load(in[x.offset(at)])) * T(load(weights[w.offset(of)]));
            }
        });
        store(out[y.offset(place)], sum);
    }
}

template <class T, class S>
void conv_grad_input(const S *grad, const S *weights, S *out, Images dy, Images w, Images dx,
    Window window, Groups groups) {
    int64 count = dx.count(), i = (int64)blockIdx.x * blockDim.x + threadIdx.x;
    int64 inputs = w.extents[1], outputs = w.extents[0] / groups.count;
    for (; i < count; i += (int64)gridDim.x * blockDim.x) {
        int64 at[5];
        dx.at(i, at);
        int64 group = at[1] / inputs;
        T sum = 0;
        window.each_seeing(at, dy, [&](int64 k, int64 (&place)[5]) {
            int64 of[5] = {0, at[1] % inputs};
            window.tap(k, (int64 (&)[3])of[2]);
            for (int64 o = 0; o < outputs; o++) {
                place[1] = of[0] = group * outputs + o;
                sum += T(load(grad[dy.offset(place)])) * T(load(weights[w.offset(of)]));
            }
        });
        store(out[dx.offset(at)], sum);
    }
}

template <class T, class S>
void conv_grad_weight(const S *grad, const S *in, S *out, Images dy, Images x, Images dw, Window window,
    Groups groups) {
    int64 outputs = dw.extents[0] / groups.count, inputs = dw.extents[1];
    Images sites = dy;
    sites.extents[1] = 1;
    for (int64 i = blockIdx.x; i < dw.count(); i += gridDim.x) {
        int64 of[5], place[5], at[5];
        dw.at(i, of);
        at[1] = of[0] / outputs * inputs + of[1];
        T own = 0;
        for (int64 site = threadIdx.x; site < sites.count(); site += blockDim.x) {
            sites.at(site, place);
            place[1] = of[0], at[0] = place[0];
            if (!window.sees(place, (int64 (&)[3])of[2], x, at)) continue;
            own += T(load(grad[dy.offset(place)])) * T(load(in[x.offset(at)]));
        }
        T sum = combined(own, added<T>);
        if (threadIdx.x == 0) store(out[dw.offset(of)], sum);
    }
}
