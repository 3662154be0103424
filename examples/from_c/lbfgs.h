/* L-BFGS without bounds: the method of SciPy's L-BFGS-B, with its defaults. */
#ifndef LBFGS_H
#define LBFGS_H

#include <stddef.h>

/* The objective at x: its value, and its gradient into g. Other than 0 ends the search. */
typedef int objective(void *state, const double *x, double *value, double *g);

/* Told of each iteration, and of the start as iteration 0. */
typedef void progress(void *state, int iteration);

/* Minimize over n unknowns from x, which ends as the best point. Returns 0, or what the objective returned;
   -1 where there is no memory. */
int lbfgs(size_t n, double *x, int iterations, objective *evaluate, progress *tell, void *state);

#endif
