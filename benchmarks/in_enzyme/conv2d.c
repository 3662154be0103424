#include "plain.h"

static double program(const double *restrict image, int64_t n, int64_t m, int64_t channels,
                      const double *restrict kernel, int64_t size, int64_t size1, int64_t channels1, int64_t filters) {
  int64_t rows = n - size + 1, columns = m - size + 1;
  double *out = zeros(rows * columns * filters), total = 0.0;
  for (int64_t i = 0; i < rows; i++)
    for (int64_t j = 0; j < columns; j++)
      for (int64_t a = 0; a < size; a++)
        for (int64_t b = 0; b < size; b++)
          for (int64_t c = 0; c < channels; c++)
            for (int64_t f = 0; f < filters; f++)
              out[(i * columns + j) * filters + f] += image[((i + a) * m + j + b) * channels + c] *
                                                      kernel[((a * size + b) * channels + c) * filters + f];
  for (int64_t i = 0; i < rows * columns * filters; i++) total += out[i] * out[i];
  free(out);
  return total;
}
