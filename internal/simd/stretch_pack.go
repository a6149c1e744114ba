package simd

import "fmt"

// halfPackers lay out what is bfloat16 already. They may be absent.
type halfPackers struct {
	// turnHalves packs 16 columns of B given as rows, ld bytes apart: steps of 32 elements of k each, a panel's step apart.
	turnHalves func(dst, src *uint16, ld, steps int)
	// pairHalves packs 8 rows of B [k, 32·panels], ld bytes apart, into 4 lines of the tiles of a step, panels stride bytes apart.
	pairHalves func(dst, src *uint16, ld, panels, stride int)
	// narrow rounds n floats, a multiple of 32.
	narrow func(dst *uint16, src *float32, n int)
}

// NarrowBF16 rounds src to bfloat16.
func NarrowBF16(dst []uint16, src []float32) {
	if len(dst) < len(src) {
		panic(fmt.Sprintf("simd: narrow %d elements into %d", len(src), len(dst)))
	}
	whole := len(src) &^ (PanelBF16 - 1)
	if cur.narrow == nil {
		whole = 0
	}
	if whole > 0 {
		cur.narrow(&dst[0], &src[0], whole)
	}
	for i := whole; i < len(src); i++ {
		dst[i] = bf16Of(src[i])
	}
}

// PackTurnedHalves is PackBBF16 with trans for b [n,k] of bfloat16.
func PackTurnedHalves(dst []uint16, k, n int, b []uint16, ldb int) {
	if n == 0 || k == 0 {
		return
	}
	if len(dst) < SizeBF16(n, k) || len(b) < (n-1)*ldb+k {
		panic(fmt.Sprintf("simd: pack %d×%d halves (ld %d) from %d into %d elements", n, k, ldb, len(b), len(dst)))
	}
	for i := 0; i < up32(n); i += tileBF16 {
		panel, steps := dst[i/PanelBF16*SizeBF16(PanelBF16, k)+i%PanelBF16*PanelBF16:], 0
		if cur.turnHalves != nil && i+tileBF16 <= n {
			if steps = k / PanelBF16; steps > 0 {
				cur.turnHalves(&panel[0], &b[i*ldb], 2*ldb, steps)
			}
		}
		for s := steps; s < up32(k)/PanelBF16; s++ {
			halfTile(panel[s*stepBF16:], n-i, k-s*PanelBF16, b, i, s*PanelBF16, ldb, false)
		}
	}
}

// PackHalves is PackBBF16 for b [k,n] of bfloat16, part of an operand with depth elements of k.
func PackHalves(dst []uint16, k, n int, b []uint16, ldb, depth int) {
	if n == 0 || k == 0 {
		return
	}
	if len(dst) < panelsBF16(n, k, depth) || len(b) < (k-1)*ldb+n {
		panic(fmt.Sprintf("simd: pack %d×%d halves (ld %d) from %d into %d elements", k, n, ldb, len(b), len(dst)))
	}
	stride := SizeBF16(PanelBF16, depth)
	for p := 0; p < k; p += PanelBF16 {
		step, panels := dst[p/PanelBF16*stepBF16:], 0
		if cur.pairHalves != nil && p+PanelBF16 <= k {
			panels = n / PanelBF16
		}
		for r := 0; r < PanelBF16 && panels > 0; r += pairRows {
			cur.pairHalves(&step[r/2*PanelBF16], &b[(p+r)*ldb], 2*ldb, panels, 2*stride)
		}
		for i := panels * PanelBF16; i < up32(n); i += tileBF16 {
			halfTile(step[i/PanelBF16*stride+i%PanelBF16*PanelBF16:], n-i, k-p, b, i, p, ldb, true)
		}
	}
}

// halfTile is packTile of B for bfloat16.
func halfTile(tile []uint16, n, depth int, src []uint16, i, p, ld int, down bool) {
	tile = tile[:tileBF16*PanelBF16]
	clear(tile)
	for r := range min(n, tileBF16) {
		for q := range min(depth, PanelBF16) {
			tile[q/2*PanelBF16+2*r+q%2] = src[at(i+r, p+q, ld, down)]
		}
	}
}
