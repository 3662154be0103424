#include "plain.h"

static double program(const double *restrict weights, int64_t k, const double *restrict means, int64_t k1, int64_t d,
                      const double *restrict scales, int64_t k2, int64_t d1, const double *restrict lower, int64_t k3,
                      int64_t d2, int64_t d3, const double *restrict x, int64_t n, int64_t d4) {
  double total = 0.0;
  for (int64_t i = 0; i < n; i++) {
    double most = -1e300, inside = 0.0;
    for (int64_t c = 0; c < k; c++) {
      double square = 0.0, logs = 0.0;
      for (int64_t e = 0; e < d; e++) {
        double z = exp(scales[c * d + e]) * (x[i * d + e] - means[c * d + e]);
        for (int64_t f = 0; f < e; f++) z += lower[(c * d + e) * d + f] * (x[i * d + f] - means[c * d + f]);
        square += z * z;
        logs += scales[c * d + e];
      }
      double term = weights[c] + logs - 0.5 * square;
      if (term > most) {
        inside = inside * exp(most - term) + 1.0;
        most = term;
      } else
        inside += exp(term - most);
    }
    total += most + log(inside);
  }
  return total;
}
