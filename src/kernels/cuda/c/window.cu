// Images (N, C, three spatial axes, of which unused ones have extent 1), and windows that slide over
// them.

struct Images {
    int64 extents[5], strides[5];
    int64 count() const {
        int64 product = 1;
        for (int d = 0; d < 5; d++) product *= extents[d];
        return product;
    }
    // Where element i, row-major, is.
    void at(int64 i, int64 (&place)[5]) const {
        // Quotients of 32 bits take a fraction of the time.
        if ((uint64)i >> 32 == 0) split((uint32)i, place);
        else split(i, place);
    }
    template <class I> void split(I i, int64 (&place)[5]) const {
        for (int d = 4; d >= 0; d--) {
            I extent = (I)extents[d], rest = i / extent;
            place[d] = i - rest * extent;
            i = rest;
        }
    }
    int64 offset(const int64 (&place)[5]) const {
        int64 sum = 0;
        for (int d = 0; d < 5; d++) sum += place[d] * strides[d];
        return sum;
    }
};

struct Window {
    int64 kernel[3], stride[3], before[3], after[3], dilation[3];

    // The steps of tap k along each axis.
    void tap(int64 k, int64 (&steps)[3]) const {
        for (int d = 2; d >= 0; d--) {
            steps[d] = k % kernel[d];
            k /= kernel[d];
        }
    }
    // The place in the image under a tap of the window at `place`; whether it is within the image.
    bool sees(const int64 (&place)[5], const int64 (&tap)[3], const Images &image, int64 (&at)[5]) const {
        bool inside = true;
        for (int d = 0; d < 3; d++) inside = moved(place, d, tap[d], image, at) && inside;
        return inside;
    }
    bool moved(const int64 (&place)[5], int d, int64 k, const Images &image, int64 (&at)[5]) const {
        at[d + 2] = place[d + 2] * stride[d] + k * dilation[d] - before[d];
        return at[d + 2] >= 0 && at[d + 2] < image.extents[d + 2];
    }
    // Calls f(k, at) for each tap of the window at `place` that is within the image, in order.
    template <class F> void each_seen(const int64 (&place)[5], const Images &image, F f) const {
        int64 at[5] = {place[0], place[1]};
        for (int64 a = 0; a < kernel[0]; a++) {
            if (!moved(place, 0, a, image, at)) continue;
            for (int64 b = 0; b < kernel[1]; b++) {
                if (!moved(place, 1, b, image, at)) continue;
                for (int64 c = 0; c < kernel[2]; c++) {
                    if (moved(place, 2, c, image, at)) f((a * kernel[1] + b) * kernel[2] + c, at);
                }
            }
        }
    }
    // Calls f(k, place) for each window of which a tap is at this place of the image: the first
    // windows, which have the last taps there, come first.
    template <class F> void each_seeing(const int64 (&at)[5], const Images &windows, F f) const {
        int64 place[5] = {at[0], at[1]};
        auto moved = [&](int d, int64 k) {
            int64 from = at[d + 2] + before[d] - k * dilation[d], step = stride[d];
            // Places are less than 2^31, of which quotients are found sooner in 32 bits.
            int64 window = step == 1 ? from : from < step ? 0 : (int32)from / (int32)step;
            place[d + 2] = window;
            return from >= 0 && window * step == from && window < windows.extents[d + 2];
        };
        for (int64 a = kernel[0]; a-- > 0;) {
            if (!moved(0, a)) continue;
            for (int64 b = kernel[1]; b-- > 0;) {
                if (!moved(1, b)) continue;
                for (int64 c = kernel[2]; c-- > 0;) {
                    if (moved(2, c)) f((a * kernel[1] + b) * kernel[2] + c, place);
                }
            }
        }
    }
    // The number of taps of a window that are within the image, or its padding, too.
    int64 within(const int64 (&place)[5], const Images &image, bool padded) const {
        int64 product = 1;
        for (int d = 0; d < 3; d++) {
            int64 count = 0;
            for (int64 k = 0; k < kernel[d]; k++) {
                int64 at = place[d + 2] * stride[d] + k * dilation[d] - before[d];
                bool inside = at >= 0 && at < image.extents[d + 2];
                count += padded ? at < image.extents[d + 2] + after[d] : inside;
            }
            product *= count;
        }
        return product;
    }
};
