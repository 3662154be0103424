#include "plain.h"

static double program(const double *restrict matrix, int64_t n, int64_t m) {
  double *a = copied(matrix, n * n), total = 0.0;
  for (int64_t i = 0; i < n; i++) {
    for (int64_t j = 0; j < i; j++) {
      for (int64_t k = 0; k < j; k++) a[i * n + j] -= a[i * n + k] * a[k * n + j];
      a[i * n + j] /= a[j * n + j];
    }
    for (int64_t j = i; j < n; j++)
      for (int64_t k = 0; k < i; k++) a[i * n + j] -= a[i * n + k] * a[k * n + j];
  }
  for (int64_t i = 0; i < n; i++) total += log(fabs(a[i * n + i]));
  free(a);
  return total;
}
