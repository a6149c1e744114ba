package layer

import (
	"strings"
	"testing"
)

// Both sides of every bound of an attention layer, with an error that begins with the field.
func TestAttnBounds(t *testing.T) {
	base := AttnConfig{Arch: &diffArch, Dim: 8, Heads: 4, Groups: 2, HeadDim: 4, HeadNorm: HeadNormOff}
	for name, x := range map[string]struct {
		set  func(c *AttnConfig)
		want string
	}{
		"base":              {func(*AttnConfig) {}, ""},
		"dim 1":             {func(c *AttnConfig) { c.Dim = 1 }, ""},
		"dim 0":             {func(c *AttnConfig) { c.Dim = 0 }, "dim: is 0"},
		"heads 0":           {func(c *AttnConfig) { c.Heads = 0 }, "heads: is 0"},
		"groups 1":          {func(c *AttnConfig) { c.Groups = 1 }, ""},
		"groups 0":          {func(c *AttnConfig) { c.Groups = 0 }, "kv_heads: is 0"},
		"groups 3":          {func(c *AttnConfig) { c.Groups = 3 }, "kv_heads: 3 does not divide heads = 4"},
		"groups over heads": {func(c *AttnConfig) { c.Groups = 8 }, "kv_heads: 8"},
		"head_dim 2":        {func(c *AttnConfig) { c.HeadDim = 2 }, ""},
		"head_dim 0":        {func(c *AttnConfig) { c.HeadDim = 0 }, "head_dim: is 0, must be positive"},
		"head_dim 3":        {func(c *AttnConfig) { c.HeadDim = 3 }, "head_dim: is 3, must be even"},
		"plain norm":        {func(c *AttnConfig) { c.HeadNorm = HeadNormPlain }, ""},
		"affine norm":       {func(c *AttnConfig) { c.HeadNorm = HeadNormAffine }, ""},
		"other norm":        {func(c *AttnConfig) { c.HeadNorm = "rms" }, `head_norm: is "rms"`},
	} {
		c := base
		x.set(&c)
		err := c.Check()
		if (err == nil) != (x.want == "") || err != nil && !strings.HasPrefix(err.Error(), x.want) {
			t.Errorf("%s: %v, want %q", name, err, x.want)
		}
	}
	if _, err := LookupArch("dif"); err == nil ||
		!strings.Contains(err.Error(), `"dif" is unknown; there are [transformer diff`) {
		t.Error(err)
	}
}
