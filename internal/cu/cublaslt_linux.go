//go:build (amd64 || arm64) && !nogpu

package cu

import (
	"fmt"
	"unsafe"
)

// cublasLt computes large products. A shape is planned once: the library's heuristics name several algorithms, and tune
// takes the fastest of those with the same bits, so that the same GPU gives the same bits in every run; after that a
// product is one call.
type cublasLt struct {
	mem       *memory
	api       ltAPI
	handle    uintptr
	version   int
	workspace uintptr
	plans     map[Product]*plan
	alpha     *[2]float32 // 1 and 0 on the heap, where the library reads factors
	events    [2]uintptr  // tune's own: a plan may be made while other work is timed
}

// workspaceSize is the library's workspace: 32 MiB is its recommendation for Hopper.
const workspaceSize = 32 << 20

type ltAPI struct {
	create, destroy, version, descCreate, descSet, layoutCreate, prefCreate, prefSet, prefDestroy, heuristic,
	matmul uintptr
}

// plan is how one shape is multiplied. Row-major c = a·b is column-major cᵀ = bᵀ·aᵀ, so a and b are swapped.
type plan struct {
	desc, a, b, c uintptr
	algo          ltResult
	none          bool // the library does not support the shape
}

// ltResult is cublasLtMatmulHeuristicResult_t.
type ltResult struct {
	algo      [8]uint64
	workspace uint64
	state     int32
	waves     float32
	_         [4]int32
}

// Numbers of cublasLt.h and library_types.h.
const (
	ltCompute32F     = 68
	ltF32, ltBF16    = 0, 14
	ltTransA         = 3
	ltTransB         = 4
	ltPrefWorkspace  = 1
	ltPrefReduction  = 3
	ltPrefAlignment  = 5 // of a; b, c, d follow
	ltReduceNone     = 0
	ltReduceInFloats = 2 // parts of the sum over k are added in fp32, in order
)

func openCublasLt(m *memory) (*cublasLt, error) {
	l, err := openLib("libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so")
	if err != nil {
		return nil, err
	}
	t := &cublasLt{mem: m, plans: map[Product]*plan{}, alpha: &[2]float32{1, 0}}
	a := &t.api
	err = l.symbols(map[string]*uintptr{
		"cublasLtCreate": &a.create, "cublasLtDestroy": &a.destroy, "cublasLtGetVersion": &a.version,
		"cublasLtMatmulDescCreate": &a.descCreate, "cublasLtMatmulDescSetAttribute": &a.descSet,
		"cublasLtMatrixLayoutCreate":     &a.layoutCreate,
		"cublasLtMatmulPreferenceCreate": &a.prefCreate, "cublasLtMatmulPreferenceSetAttribute": &a.prefSet,
		"cublasLtMatmulPreferenceDestroy": &a.prefDestroy, "cublasLtMatmulAlgoGetHeuristic": &a.heuristic,
		"cublasLtMatmul": &a.matmul,
	})
	if err != nil {
		return nil, err
	}
	if code := call(a.create, m.result(0)); code != 0 {
		return nil, fmt.Errorf("cublasLtCreate: status %d", code)
	}
	t.handle = uintptr(m.out[0])
	t.version = int(call(a.version))
	for i := range t.events {
		if err := m.check("cuEventCreate", call(m.api.eventCreate, m.result(0), 0)); err != nil {
			return nil, err
		}
		t.events[i] = uintptr(m.out[0])
	}
	if t.workspace, err = m.fresh(workspaceSize); err != nil {
		t.close()
		return nil, err
	}
	return t, nil
}

func (t *cublasLt) close() {
	_ = call(t.api.destroy, t.handle)
	_ = call(t.mem.api.memFree, t.workspace)
	for _, e := range t.events {
		_ = call(t.mem.api.eventDestroy, e)
	}
}

// multiply computes a product if the library supports its shape.
func (t *cublasLt) multiply(p *Product) (bool, error) {
	pl, err := t.plan(p)
	if err != nil || pl.none {
		return false, err
	}
	if code := t.run(pl, p); code != 0 {
		return false, fmt.Errorf("cublasLtMatmul of %d×%d×%d: status %d", p.M, p.N, p.K, code)
	}
	return true, nil
}

// plan returns the plan of a shape, creating it the first time. Alignment is part of the shape.
func (t *cublasLt) plan(p *Product) (*plan, error) {
	key := *p
	key.A, key.B, key.C = p.A&15, p.B&15, p.C&15
	if pl, ok := t.plans[key]; ok {
		return pl, nil
	}
	pl := &plan{}
	if err := t.make(pl, p); err != nil {
		return nil, fmt.Errorf("cuBLASLt, product of %d×%d×%d: %w", p.M, p.N, p.K, err)
	}
	t.plans[key] = pl
	return pl, nil
}

// make describes the product to the library and takes its first choice. Plans live as long as the driver.
func (t *cublasLt) make(pl *plan, p *Product) error {
	var err error
	do := func(what string, code int32) {
		if code != 0 && err == nil {
			err = fmt.Errorf("%s: status %d", what, code)
		}
	}
	do("descriptor", call(t.api.descCreate, uintptr(unsafe.Pointer(&pl.desc)), ltCompute32F, ltF32))
	do("transpose", t.set(t.api.descSet, pl.desc, ltTransA, flag(p.TransB)))
	do("transpose", t.set(t.api.descSet, pl.desc, ltTransB, flag(p.TransA)))
	bRows, bCols, aRows, aCols, cType := p.N, p.K, p.K, p.M, ltBF16
	if p.TransB {
		bRows, bCols = bCols, bRows
	}
	if p.TransA {
		aRows, aCols = aCols, aRows
	}
	if p.Float {
		cType = ltF32
	}
	do("layout", t.layout(&pl.a, ltBF16, bRows, bCols, p.LdB))
	do("layout", t.layout(&pl.b, ltBF16, aRows, aCols, p.LdA))
	do("layout", t.layout(&pl.c, cType, p.N, p.M, p.LdC))
	if err != nil {
		return err
	}
	return t.choose(pl, p)
}

// choose uses the heuristics and, if worthwhile, timing. Nothing can be timed during a recording.
func (t *cublasLt) choose(pl *plan, p *Product) error {
	var pref uintptr
	if code := call(t.api.prefCreate, uintptr(unsafe.Pointer(&pref))); code != 0 {
		return fmt.Errorf("preference: status %d", code)
	}
	defer func() { _ = call(t.api.prefDestroy, pref) }()
	size := uint64(workspaceSize)
	code := call(t.api.prefSet, pref, ltPrefWorkspace, uintptr(unsafe.Pointer(&size)), 8)
	reduction := int32(ltReduceNone)
	if p.Split {
		reduction = ltReduceInFloats
	}
	code |= t.set(t.api.prefSet, pref, ltPrefReduction, reduction)
	for i, addr := range []uintptr{p.B, p.A, p.C, p.C} {
		code |= t.set(t.api.prefSet, pref, ltPrefAlignment+uintptr(i), int32(alignment(addr)))
	}
	if code != 0 {
		return fmt.Errorf("preference: status %d", code)
	}
	var found int32
	ways := make([]ltResult, 8)
	code = call(t.api.heuristic, t.handle, pl.desc, pl.a, pl.b, pl.c, pl.c, pref, uintptr(len(ways)),
		uintptr(unsafe.Pointer(&ways[0])), uintptr(unsafe.Pointer(&found)))
	pl.algo = ways[0]
	pl.none = code != 0 || found == 0 || pl.algo.state != 0 || pl.algo.workspace > workspaceSize
	if !pl.none && found > 1 && 2*p.M*p.N*p.K >= tuneFrom && !t.mem.recording {
		t.tune(pl, p, ways[:found])
	}
	return nil
}

// alignment is the largest power of two, up to 16, that divides an address: no kernel needs more.
func alignment(addr uintptr) int {
	n := 2
	for n < 16 && addr%uintptr(2*n) == 0 {
		n *= 2
	}
	return n
}

// set sets an attribute of four bytes.
func (t *cublasLt) set(fn, object, attr uintptr, value int32) int32 {
	v := value
	return call(fn, object, attr, uintptr(unsafe.Pointer(&v)), 4)
}

func (t *cublasLt) layout(at *uintptr, dtype, rows, cols, ld int) int32 {
	return call(t.api.layoutCreate, uintptr(unsafe.Pointer(at)), uintptr(dtype), uintptr(rows), uintptr(cols),
		uintptr(max(ld, rows)))
}

func flag(b bool) int32 {
	if b {
		return 1
	}
	return 0
}
