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
        for (int d = 4; d >= 0; d--) {
            place[d] = i % extents[d];
            i /= extents[d];
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

    int64 taps() const { return kernel[0] * kernel[1] * kernel[2]; }
    // The steps of tap k along each axis.
    void tap(int64 k, int64 (&steps)[3]) const {
        for (int d = 2; d >= 0; d--) {
            steps[d] = k % kernel[d];
            k /= kernel[d];
        }
    }
    // The place in the image under tap k of the window at `place`; whether it is within the image.
    bool seen(const int64 (&place)[5], int64 k, const Images &image, int64 (&at)[5]) const {
        int64 steps[3];
        tap(k, steps);
        bool inside = true;
        for (int d = 0; d < 3; d++) {
            at[d + 2] = place[d + 2] * stride[d] + steps[d] * dilation[d] - before[d];
            inside = inside && at[d + 2] >= 0 && at[d + 2] < image.extents[d + 2];
        }
        return inside;
    }
    // The window whose tap k is at this place of the image; whether there is one.
    bool seeing(const int64 (&at)[5], int64 k, const Images &windows, int64 (&place)[5]) const {
        int64 steps[3];
        tap(k, steps);
        for (int d = 0; d < 3; d++) {
            int64 from = at[d + 2] + before[d] - steps[d] * dilation[d];
            if (from < 0 || from % stride[d] || from / stride[d] >= windows.extents[d + 2]) return false;
            place[d + 2] = from / stride[d];
        }
        return true;
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
