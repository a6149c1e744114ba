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
		scaleRows:   [2]func(*outArgs){scaleRowsNearTile, scaleRowsFarTile},
		turnRows:    [2]func(*outArgs){turnRowsNearTile, turnRowsFarTile},
		productTile: func(a *productArgs) { a.config = &tileConfig[0]; productTile(a) },
	}
}
