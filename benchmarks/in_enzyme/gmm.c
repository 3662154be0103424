#include "plain.h"

static double program(const double *restrict weights, int64_t k, const double *restrict means, int64_t k1, int64_t d,
                      const double *restrict scales, int64_t k2, int64_t d1, const double *restrict lower, int64_t k3,
                      int64_t d2, int64_t d3, const double *restrict x, int64_t n, int64_t d4) {
  double *away = zeros(d), *term = zeros(k), total = 0.0;
  for (int64_t i = 0; i < n; i++) {
    for (int64_t c = 0; c < k; c++) {
      for (int64_t e = 0; e < d; e++) away[e] = x[i * d + e] - means[c * d + e];
      double square = 0.0, logs = 0.0;
      for (int64_t e = 0; e < d; e++) {
        double z = exp(scales[c * d + e]) * away[e];
        for (int64_t f = 0; f < e; f++) z += lower[(c * d + e) * d + f] * away[f];
        square += z * z;
        logs += scales[c * d + e];
      }
      term[c] = weights[c] + logs - 0.5 * square;
    }
    double most = term[0], inside = 0.0;
    for (int64_t c = 1; c < k; c++) most = term[c] > most ? term[c] : most;
    for (int64_t c = 0; c < k; c++) inside += exp(term[c] - most);
    total += most + log(inside);
  }
  free(away);
  free(term);
  return total;
}
