package train

import (
	"bytes"
	"path/filepath"
	"testing"

	"antiphase/layer"
)

// Runs that differ in train.recompute alone end in the same bytes, and one may continue where another stopped.
func TestRecomputeSameBytes(t *testing.T) {
	for _, a := range layer.Archs() {
		var want map[string][]byte
		for i, how := range layer.Recomputes {
			set := []string{"train.steps=6", "train.micro_batch=1", "train.eval_every=3", "data.held_out=0.2",
				"train.recompute=" + string(how)}
			dir := t.TempDir()
			opt := options(t, dir)
			if i > 0 { // begin with the last choice, continue with this one
				before := append([]string(nil), set...)
				before[4] = "train.recompute=" + string(layer.Recomputes[i-1])
				stopAt(t, nano(t, a.Name, before...), opt, 3)
			}
			mustRun(t, nano(t, a.Name, set...), opt)
			got := files(t, filepath.Join(dir, "checkpoints", "step-00000006"))
			for name, b := range got {
				got[name] = bytes.ReplaceAll(b, []byte(`"recompute": "`+string(how)), []byte(`"recompute": "off`))
			}
			delete(got, "MANIFEST.json") // it hashes state.json, which has the recipe
			if want == nil {
				want = got
			}
			sameFiles(t, got, want)
		}
	}
}
