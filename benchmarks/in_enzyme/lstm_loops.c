#include "plain.h"

static double program(const double *restrict inputs, int64_t steps, int64_t n, const double *restrict w, int64_t four,
                      int64_t two, int64_t n1, const double *restrict b, int64_t four1, int64_t n2) {
  double *h = zeros(n), *c = zeros(n), total = 0.0;
  for (int64_t t = 0; t < steps; t++)
    for (int64_t i = 0; i < n; i++) {
      double x = inputs[t * n + i];
      double forget = 1.0 / (1.0 + exp(-(w[i] * x + w[n + i] * h[i] + b[i])));
      double enter = 1.0 / (1.0 + exp(-(w[2 * n + i] * x + w[3 * n + i] * h[i] + b[n + i])));
      double leave = 1.0 / (1.0 + exp(-(w[4 * n + i] * x + w[5 * n + i] * h[i] + b[2 * n + i])));
      double new = tanh(w[6 * n + i] * x + w[7 * n + i] * h[i] + b[3 * n + i]);
      c[i] = forget * c[i] + enter * new;
      h[i] = leave * tanh(c[i]);
      total += h[i] * h[i];
    }
  free(h);
  free(c);
  return total;
}
