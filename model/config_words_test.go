package model

import (
	"fmt"
	"math"
	"strings"
	"testing"
)

// Without an ffn its default follows dim; an error about the width names dim, whatever becomes of the default.
func TestConfigNamesDim(t *testing.T) {
	for dim, want := range map[int]string{0: "must be positive", -64: "must be positive", 1<<31 + 1: "must be at most",
		1 << 60: "must be at most", 1 << 62: "must be at most", math.MaxInt: "must be at most"} {
		_, err := Config{Arch: "diff", Vocab: 20, Context: 16, Layers: 1, Dim: dim, Heads: 2, HeadDim: 4}.Complete()
		if want = fmt.Sprintf("dim: is %d, %s", dim, want); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// The errors of a configuration name the field, its values and what would be right.
func TestConfigWords(t *testing.T) {
	for want, change := range map[string]func(c *Config){
		"vocab × dim: 2147483649 × 16 is beyond any memory": func(c *Config) { c.Vocab = 1<<31 + 1 },
		"rope_theta = -1 must be positive; norm_eps = 0.25, head_norm_eps = 0.5, " +
			"lambda_std = 0.75 not negative": func(c *Config) {
			c.RopeTheta, c.NormEps, c.HeadNormEps, c.LambdaStd = -1, 0.25, 0.5, 0.75
		},
		`lambda_init: is "x", must be "schedule" or "constant"`: func(c *Config) { c.LambdaInit = "x" },
	} {
		c, err := Config{Arch: "diff", Vocab: 20, Context: 16, Layers: 1, Dim: 16, Heads: 2, HeadDim: 4}.Complete()
		if err != nil {
			t.Fatal(err)
		}
		change(&c)
		if err := c.Check(); err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
