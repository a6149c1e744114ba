// y [m,n] = x [m,k]·Wᵀ by oneDNN: f32 or bf16 in and out, weights packed by the library beforehand or plain in every call.
//
//   g++ -O2 -fopenmp -o gemm_onednn gemm_onednn.cpp -ldnnl
//   ./gemm_onednn M N K THREADS REPS f32|bf16 packed|plain
#include <dnnl.hpp>
#include <omp.h>
#include <cstring>
#include <string>
#include <unordered_map>
#include <vector>
#include "gemm_peer.h"

using namespace dnnl;
using tag = memory::format_tag;

// holding makes memory of type t from fp32 values laid out as desc's shape and the tag f.
static memory holding(float *x, memory::dims dims, tag f, memory::desc want, engine &eng, stream &s) {
    memory plain({dims, memory::data_type::f32, f}, eng, x), out(want, eng);
    reorder(plain, out).execute(s, plain, out);
    s.wait();
    return out;
}

int main(int argc, char **argv) {
    problem p = problem_of(argc, argv);
    std::string type = argc > 6 ? argv[6] : "f32", weights = argc > 7 ? argv[7] : "packed";
    omp_set_num_threads(p.threads);
    auto t = type == "bf16" ? memory::data_type::bf16 : memory::data_type::f32;
    engine eng(engine::kind::cpu, 0);
    stream s(eng);
    float *x = noise((size_t)p.m * p.k), *w = noise((size_t)p.n * p.k), *y = noise((size_t)p.m * p.n);
    memory::dims dx{p.m, p.k}, dw{p.k, p.n}, dy{p.m, p.n};
    memory::desc mx(dx, t, tag::ab), mw(dw, t, weights == "packed" ? tag::any : tag::ba), my(dy, t, tag::ab);
    matmul::primitive_desc pd(matmul::desc(mx, mw, my), eng);
    memory hx = holding(x, dx, tag::ab, mx, eng, s), hw = holding(w, dw, tag::ba, pd.weights_desc(), eng, s), hy(my, eng);
    matmul prim(pd);
    std::unordered_map<int, memory> args{{DNNL_ARG_SRC, hx}, {DNNL_ARG_WEIGHTS, hw}, {DNNL_ARG_DST, hy}};
    begin_rows(("onednn " + type + " " + weights).c_str(), &p);
    for (int i = -p.warmup; i < p.reps; i++) {
        double begin = now();
        prim.execute(s, args);
        s.wait();
        if (i >= 0) one_row(i, now() - begin);
    }
    memory plain({dy, memory::data_type::f32, tag::ab}, eng, y);
    reorder(hy, plain).execute(s, hy, plain);
    s.wait();
    end_rows(check(x, w, y, &p));
    return 0;
}
