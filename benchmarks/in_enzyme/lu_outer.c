#include "plain.h"

static double program(const double *restrict matrix, int64_t n, int64_t m) {
  double *a = copied(matrix, n * n), total = 0.0;
  for (int64_t k = 0; k < n; k++)
    for (int64_t i = k + 1; i < n; i++) {
      a[i * n + k] /= a[k * n + k];
      for (int64_t j = k + 1; j < n; j++) a[i * n + j] -= a[i * n + k] * a[k * n + j];
    }
  for (int64_t k = 0; k < n; k++) total += log(fabs(a[k * n + k]));
  free(a);
  return total;
}
