/* The loop programs as plain C, line by line, for a compiler that differentiates them. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static inline double *copied(const double *from, int64_t count) {
  double *made = malloc((size_t)count * sizeof *made);
  memcpy(made, from, (size_t)count * sizeof *made);
  return made;
}

static inline double *zeros(int64_t count) { return calloc((size_t)count, sizeof(double)); }
