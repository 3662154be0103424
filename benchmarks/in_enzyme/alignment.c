#include "plain.h"

static double program(const double *restrict x, int64_t n, const double *restrict y, int64_t m, double gap) {
  double *table = zeros((n + 1) * (m + 1));
  for (int64_t i = 1; i < n + 1; i++) table[i * (m + 1)] = gap * (double)i;
  for (int64_t j = 1; j < m + 1; j++) table[j] = gap * (double)j;
  for (int64_t i = 1; i < n + 1; i++)
    for (int64_t j = 1; j < m + 1; j++) {
      double *at = table + i * (m + 1) + j, away = x[i - 1] - y[j - 1];
      double a = at[-m - 2] + away * away, b = at[-m - 1] + gap, c = at[-1] + gap;
      double least = a < b ? a : b;
      least = least < c ? least : c;
      at[0] = least - log(exp(least - a) + exp(least - b) + exp(least - c));
    }
  double value = table[n * (m + 1) + m];
  free(table);
  return value;
}
