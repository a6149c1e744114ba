//go:build !purego

package simd

// The table is filled in here, before anything runs.
func init() {
	amx.attnKernels = attnKernels{
		forwardTile: func(a *forwardArgs) { a.config = &tileConfig[0]; attnForwardTile(a) },
		gradTile: [2]func(*gradArgs){
			func(a *gradArgs) { a.config = &tileConfig[0]; attnGrad1Tile(a) },
			func(a *gradArgs) { a.config = &tileConfig[0]; attnGrad2Tile(a) },
		},
		outKernels: outKernels{
			scaleRows:    [2]func(*outArgs){scaleRowsNearTile, scaleRowsFarTile},
			scaleHalves:  [2]func(*outArgs){scaleHalvesNearTile, scaleHalvesFarTile},
			turnRows:     [2]func(*outArgs){turnRowsNearTile, turnRowsFarTile},
			turnToHalves: [2]func(*outArgs){turnToHalvesNearTile, turnToHalvesFarTile},
		},
		rowKernels:  rowKernels{dots: dotsTile, logSums: logSumsTile, normRows: normRowsTile, normBack: normBackTile},
		productTile: func(a *productArgs) { a.config = &tileConfig[0]; productTile(a) },
	}
	for _, k := range []*kernels{&avx2, &avxvnni} {
		k.scaleRows = [2]func(*outArgs){scaleRowsAVX2, scaleRowsAVX2}
		k.softKernels = softKernels{softTile: softTileAVX2,
			softBack: [2]func(*softBackArgs){softBack1AVX2, softBack2AVX2}, mixNorm: mixNormAVX2,
			normBackFloat: normBackAVX2}
	}
	amx.stretchKernels = stretchKernels{
		keys: []func(*stretchKeys){oneColumn(keys1xStretch), oneColumn(keys2xStretch), oneColumn(keys3xStretch),
			oneColumn(keys4xStretch)},
		values: []func(*stretchValues){values1xStretch, values2xStretch},
		soft:   softStretch,
		join:   joinRowsStretch,
	}
}

// columnConfig is tileConfig with tile 4 alone as wide as a line: the others hold a single column.
var columnConfig = func() (c [64]byte) {
	c = tileConfig
	for t := range 8 {
		if t != 4 {
			c[16+2*t] = 4
		}
	}
	return c
}()

func oneColumn(kernel func(*stretchKeys)) func(*stretchKeys) {
	return func(a *stretchKeys) { a.config = &columnConfig[0]; kernel(a) }
}
