package hf

import (
	"errors"
	"math"
	"path/filepath"
	"slices"
	"testing"
)

// Where Hugging Face's tools keep models: each variable before those that follow it.
func TestCacheDir(t *testing.T) {
	t.Setenv("HOME", "/h")
	t.Setenv("USERPROFILE", "/h")
	for _, name := range []string{"HF_HUB_CACHE", "HF_HOME", "XDG_CACHE_HOME"} {
		t.Setenv(name, "")
	}
	for _, c := range []struct{ name, value, want string }{
		{"HOME", "/h", "/h/.cache/huggingface/hub"}, {"XDG_CACHE_HOME", "/x", "/x/huggingface/hub"},
		{"HF_HOME", "/f", "/f/hub"}, {"HF_HUB_CACHE", "/c", "/c"},
	} {
		t.Setenv(c.name, c.value)
		if got, err := cacheDir(); err != nil || filepath.ToSlash(got) != c.want {
			t.Errorf("%s=%s: %s, %v; want %s", c.name, c.value, got, err, c.want)
		}
	}
	for name, want := range map[string]bool{"org/model": true, "o.r-g_/m.o-d_el": true, "org/model@main": true,
		"org/model@refs/pr/1": true, "org": false, "org/": false, "/model": false, "a/b/c": false, "org/..": false,
		"org/a..b": false, "org/model@": false, "org/model@../x": false, ".org/model": false,
		"org/mod el": false, "": false} {
		if IsHubName(name) != want {
			t.Errorf("%q is a name on the Hub: %v", name, !want)
		}
	}
}

// The largest values that float16 holds, on both sides of where rounding makes them infinite.
func TestBeyondHalf(t *testing.T) {
	for x, want := range map[float32]bool{0: false, 65504: false, 65519.99: false, 65520: true, -65519.99: false,
		-65520: true, math.MaxFloat32: true, float32(math.Inf(1)): false, float32(math.Inf(-1)): false} {
		if beyondHalf(x) != want {
			t.Errorf("%g is beyond float16: %v", x, !want)
		}
	}
	if beyondHalf(float32(math.NaN())) {
		t.Error("NaN is beyond float16")
	}
}

// The last parameter is read once, another one anew, and one that failed again.
func TestRemember(t *testing.T) {
	var asked []string
	fails := true
	get := remember(func(name string) ([]float32, error) {
		asked = append(asked, name)
		if name == "c" && fails {
			return nil, errors.New("lost")
		}
		return []float32{float32(len(name) + int(name[0]))}, nil
	})
	for _, name := range []string{"a", "a", "b", "a", "c", "a", "c"} {
		x, err := get(name)
		if (err != nil) != (name == "c" && fails) || err == nil && x[0] != float32(1+int(name[0])) {
			t.Errorf("%s: %v, %v", name, x, err)
		}
		if name == "c" {
			fails = false
		}
	}
	if want := []string{"a", "b", "a", "c", "c"}; !slices.Equal(asked, want) {
		t.Errorf("asked for %v, want %v", asked, want)
	}
}
