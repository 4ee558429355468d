// The rules of the optimizers: one element of the parameter and its moments.

// Denormal moments would slow down processors; a GPU does the same for the same bits.
template <class T> T flushed(T x) {
    const T least = sizeof(T) == 8 ? T(2.2250738585072014e-308) : T(1.17549435e-38);
    return fabs(x) < least ? T(0) : x;
}
// Unless nothing is added to it before the division by its root.
template <class T> T second_moment(T x, double eps) { return eps == 0 ? x : flushed(x); }

template <class T> void adagrad(T &p, T g, T &history, T lr, T eps) {
    history = history + g * g;
    p = p - lr * g / sqrt(history + eps);
}
template <class T> void rmsprop(T &p, T g, T &average, T lr, double rho, double eps) {
    average = second_moment(T(rho) * average + T(1 - rho) * (g * g), eps);
    p = p - lr * g / sqrt(average + T(eps));
}
template <class T> void lion(T &p, T g, T &m, T lr, double beta1, double beta2, T decay) {
    T mean = T(beta1) * m + T(1 - beta1) * g;
    T sign = mean > 0 ? T(1) : mean < 0 ? T(-1) : mean;
    p = p - lr * (sign + decay * p);
    m = flushed(T(beta2) * m + T(1 - beta2) * g);
}
template <class T> void sgd(T &p, T g, T lr) { p = p - lr * g; }
template <class T>
void sgd(T &p, T g, T &buffer, T lr, double momentum, double dampening, bool nesterov) {
    buffer = flushed(T(momentum) * buffer + T(1 - dampening) * g);
    p = p - lr * (nesterov ? g + T(momentum) * buffer : buffer);
}
// What Adam's moments are multiplied by in step `t`, counted from 1: powers take longer than the rest
// of an update, so that one thread of a block takes them.
struct Corrections { double rate, root; };
inline Corrections corrections(double lr, double beta1, double beta2, int32 step) {
    __shared__ Corrections found;
    double t = (double)step + 1;
    if (threadIdx.x == 0) found = {lr / (1 - pow(beta1, t)), 1 / sqrt(1 - pow(beta2, t))};
    __syncthreads();
    return found;
}
// `decay`, if it is decoupled, shrinks the parameter first.
template <class T> void adam(T &p, T g, T &m, T &v, double lr, double beta1, double beta2, double eps,
    Corrections by, double decay) {
    m = flushed(T(beta1) * m + T(1 - beta1) * g);
    v = second_moment(T(beta2) * v + T(1 - beta2) * (g * g), eps);
    T start = decay == 0 ? p : p * T(1 - lr * decay);
    p = start - T(by.rate) * m / (sqrt(v) * T(by.root) + T(eps));
}
