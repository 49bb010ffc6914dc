"""The functions that a file may need: products, convolution, pooling, attention. They are written into it when it calls
them.
"""

SOURCES = {
    "linear": """
static void linear(const float *x, const float *w, const float *b, float *y, long rows, long in, long out)
{
    for (long r = 0; r < rows; ++r)
        for (long o = 0; o < out; ++o) {
            float sum = 0.0f;
            for (long i = 0; i < in; ++i) sum += x[r * in + i] * w[o * in + i];
            y[r * out + o] = b ? sum + b[o] : sum;
        }
}""",
    "matmul": """
static void matmul(const float *a, const float *b, float *y, long rows, long inner, long columns)
{
    for (long r = 0; r < rows; ++r) {
        for (long c = 0; c < columns; ++c) y[r * columns + c] = 0.0f;
        for (long i = 0; i < inner; ++i)
            for (long c = 0; c < columns; ++c) y[r * columns + c] += a[r * inner + i] * b[i * columns + c];
    }
}""",
    "conv": """
static void conv(const float *x, const float *w, const float *b, float *y, long samples, long channels,
                 long height, long width, long outs, long kh, long kw,
                 long oh, long ow, const long *stride, const long *pad, const long *dilation, long groups)
{
    const long each = channels / groups;
    for (long n = 0; n < samples; ++n)
        for (long o = 0; o < outs; ++o) {
            const long first = o / (outs / groups) * each;
            for (long i = 0; i < oh; ++i)
                for (long j = 0; j < ow; ++j) {
                    float sum = b ? b[o] : 0.0f;
                    for (long c = 0; c < each; ++c)
                        for (long p = 0; p < kh; ++p) {
                            const long row = i * stride[0] - pad[0] + p * dilation[0];
                            if (row < 0 || row >= height) continue;
                            for (long q = 0; q < kw; ++q) {
                                const long column = j * stride[1] - pad[1] + q * dilation[1];
                                if (column < 0 || column >= width) continue;
                                sum += x[((n * channels + first + c) * height + row) * width + column] *
                                       w[((o * each + c) * kh + p) * kw + q];
                            }
                        }
                    y[((n * outs + o) * oh + i) * ow + j] = sum;
                }
        }
}""",
    "max_pool": """
static void max_pool(const float *x, float *y, long planes, long height, long width, long kh, long kw, long oh,
                     long ow, const long *stride, const long *pad, const long *dilation)
{
    for (long n = 0; n < planes; ++n)
        for (long i = 0; i < oh; ++i)
            for (long j = 0; j < ow; ++j) {
                float most = -INFINITY;
                for (long p = 0; p < kh; ++p)
                    for (long q = 0; q < kw; ++q) {
                        const long row = i * stride[0] - pad[0] + p * dilation[0],
                                   column = j * stride[1] - pad[1] + q * dilation[1];
                        if (row < 0 || row >= height || column < 0 || column >= width) continue;
                        const float v = x[(n * height + row) * width + column];
                        if (v > most || v != v) most = v;
                    }
                y[(n * oh + i) * ow + j] = most;
            }
}""",
    "avg_pool": """
static void avg_pool(const float *x, float *y, long planes, long height, long width, long kh, long kw, long oh,
                     long ow, const long *stride, const long *pad, int with_padding)
{
    for (long n = 0; n < planes; ++n)
        for (long i = 0; i < oh; ++i)
            for (long j = 0; j < ow; ++j) {
                float sum = 0.0f;
                const long top = i * stride[0] - pad[0], left = j * stride[1] - pad[1];
                const long bottom = top + kh < height + pad[0] ? top + kh : height + pad[0];
                const long right = left + kw < width + pad[1] ? left + kw : width + pad[1];
                const long all = (bottom - top) * (right - left);
                long seen = 0;
                for (long row = top < 0 ? 0 : top; row < bottom && row < height; ++row)
                    for (long column = left < 0 ? 0 : left; column < right && column < width; ++column, ++seen)
                        sum += x[(n * height + row) * width + column];
                y[(n * oh + i) * ow + j] = sum / (float)(with_padding ? all : seen);
            }
}""",
    "adaptive_avg_pool": """
static void adaptive_avg_pool(const float *x, float *y, long planes, long height, long width, long oh, long ow)
{
    for (long n = 0; n < planes; ++n)
        for (long i = 0; i < oh; ++i)
            for (long j = 0; j < ow; ++j) {
                const long top = i * height / oh, bottom = ((i + 1) * height + oh - 1) / oh;
                const long left = j * width / ow, right = ((j + 1) * width + ow - 1) / ow;
                float sum = 0.0f;
                for (long row = top; row < bottom; ++row)
                    for (long column = left; column < right; ++column) sum += x[(n * height + row) * width + column];
                y[(n * oh + i) * ow + j] = sum / (float)((bottom - top) * (right - left));
            }
}""",
    "normalize": """
static void normalize(const float *x, const float *w, const float *b, float *y, long rows, long width, long per,
                      float eps)
{
    /* Each row to mean 0 and deviation 1; weight and bias change every `per` elements. */
    for (long r = 0; r < rows; ++r) {
        const float *const in = x + r * width;
        float mean = 0.0f, square = 0.0f;
        for (long i = 0; i < width; ++i) mean += in[i];
        mean /= (float)width;
        for (long i = 0; i < width; ++i) square += (in[i] - mean) * (in[i] - mean);
        const float scale = 1.0f / sqrtf(square / (float)width + eps);
        for (long i = 0; i < width; ++i) {
            const float v = (in[i] - mean) * scale;
            y[r * width + i] = (w ? v * w[i / per] : v) + (b ? b[i / per] : 0.0f);
        }
    }
}""",
    "softmax": """
static void softmax(const float *x, float *y, long outer, long size, long inner, int logarithm)
{
    for (long o = 0; o < outer; ++o)
        for (long k = 0; k < inner; ++k) {
            const float *const in = x + o * size * inner + k;
            float *const out = y + o * size * inner + k;
            float most = -INFINITY, sum = 0.0f;
            for (long i = 0; i < size; ++i) most = in[i * inner] > most ? in[i * inner] : most;
            for (long i = 0; i < size; ++i) sum += expf(in[i * inner] - most);
            for (long i = 0; i < size; ++i)
                out[i * inner] = logarithm ? in[i * inner] - most - logf(sum) : expf(in[i * inner] - most) / sum;
        }
}""",
    "attention": """
static void attention(const float *q, const float *k, const float *v, float *y, float *row, long heads,
                      long length, long keys, long width, long out, float scale, int causal)
{
    for (long h = 0; h < heads; ++h)
        for (long i = 0; i < length; ++i) {
            const long seen = causal && i + 1 < keys ? i + 1 : keys;
            float most = -INFINITY, sum = 0.0f;
            for (long j = 0; j < seen; ++j) {
                float dot = 0.0f;
                for (long e = 0; e < width; ++e) dot += q[(h * length + i) * width + e] * k[(h * keys + j) * width + e];
                row[j] = dot * scale;
                most = row[j] > most ? row[j] : most;
            }
            for (long j = 0; j < seen; ++j) {
                row[j] = expf(row[j] - most);
                sum += row[j];
            }
            for (long e = 0; e < out; ++e) {
                float mixed = 0.0f;
                for (long j = 0; j < seen; ++j) mixed += row[j] * v[(h * keys + j) * out + e];
                y[(h * length + i) * out + e] = mixed / sum;
            }
        }
}""",
}
SOURCES = {name: text.strip("\n") for name, text in SOURCES.items()}
