/* y [m,n] = x [m,k]·Wᵀ in fp32 by OpenBLAS: seconds of each repetition as JSON.
 *
 *   gcc -O2 -o gemm_openblas gemm_openblas.c -lopenblas -lm
 *   OPENBLAS_CORETYPE=SkylakeX ./gemm_openblas M N K THREADS REPS
 */
#include <cblas.h>
#include <stdio.h>
#include <stdlib.h>
#include "gemm_peer.h"

void openblas_set_num_threads(int n);

int main(int argc, char **argv) {
    struct problem p = problem_of(argc, argv);
    openblas_set_num_threads(p.threads);
    float *x = noise((size_t)p.m * p.k), *w = noise((size_t)p.n * p.k), *y = noise((size_t)p.m * p.n);
    begin_rows("openblas f32", &p);
    for (int i = -p.warmup; i < p.reps; i++) {
        double t = now();
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, p.m, p.n, p.k, 1, x, p.k, w, p.k, 0, y, p.n);
        if (i >= 0) one_row(i, now() - t);
    }
    end_rows(check(x, w, y, &p));
    return 0;
}
