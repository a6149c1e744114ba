//go:build !linux && !darwin

package cpu

import "os"

// processor is the processor's model as the system names it; empty if it does not. Windows sets this variable.
func processor() string { return os.Getenv("PROCESSOR_IDENTIFIER") }
