//go:build !linux || (!amd64 && !arm64) || nogpu

package dist

import (
	"fmt"
	"runtime"
)

// openMPILib fails: this build cannot load libraries.
func openMPILib(Launch) (mpiLib, error) {
	return nil, fmt.Errorf("dist: MPI is %w: this program was built for %s/%s without it", ErrUnavailable, runtime.GOOS,
		runtime.GOARCH)
}
