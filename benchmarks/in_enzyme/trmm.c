#include "plain.h"

static double program(const double *restrict lower, int64_t n, int64_t n1, const double *restrict b, int64_t n2,
                      int64_t m, double alpha) {
  double *x = copied(b, n * m), total = 0.0;
  for (int64_t i = 0; i < n; i++)
    for (int64_t j = 0; j < m; j++) {
      for (int64_t k = i + 1; k < n; k++) x[i * m + j] += lower[k * n + i] * x[k * m + j];
      x[i * m + j] *= alpha;
    }
  for (int64_t i = 0; i < n * m; i++) total += x[i] * x[i];
  free(x);
  return total;
}
