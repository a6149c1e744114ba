package simd

import "golang.org/x/sys/windows"

// Features of IsProcessorFeaturePresent, as Microsoft's documentation numbers them. A version of Windows that does not
// know one reports that it is absent.
const (
	featureI8MM = 66
	featureBF16 = 68
)

func hasBF16() bool { return windows.IsProcessorFeaturePresent(featureBF16) }

// hasI8MM asks the system, because golang.org/x/sys/cpu does not report it here.
func hasI8MM() bool { return windows.IsProcessorFeaturePresent(featureI8MM) }
