package data

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"path/filepath"
	"reflect"
	"testing"
)

// Random rows are those that runs have been trained on: 100 batches of one component and of a mixture, hashed when the
// order was fixed, and the position after them as checkpoints store it. A change here breaks the resume of older runs.
func TestRandomStaysAsItWas(t *testing.T) {
	mixed := mixedSet(t, []Share{{Weight: 3, Epochs: 9.5}, {Weight: 1}}, 900, 500)
	for name, x := range map[string]struct {
		sp             *Split
		hash, position string
	}{
		"one": {split(t, buildSet(t, randomTexts(60, 40, 1), narrow, BuildOptions{ShardTokens: 300}), Train),
			"5974b2a00416e28cec10ada4",
			`{"dataset":"88789b96fc748bbe5189c1c717bc90ddaa3c9fa43dcf3d026271995a798dd53c","split":"train","seed":5,"order":"random","t":17,"rows":[300]}`},
		"mixed": {mix(t, mixed),
			"82764dbb64eb289f3455a73e",
			`{"dataset":"866c2d6d8ac0e062166ae664f908b3b617bfc5e76c1502540c5ad66ef36f673a","split":"train","seed":5,"order":"random","t":17,"mixture":[{"weight":3,"epochs":9.5},{"weight":1}],"rows":[225,75]}`},
	} {
		l := NewLoader(x.sp, 3, 17, 5)
		h := sha256.New()
		for range 100 {
			b := next(l)
			for _, x := range [][]int32{b.inputs, b.targets, b.starts} {
				must(0, binary.Write(h, binary.LittleEndian, x))
			}
		}
		if got := fmt.Sprintf("%x", h.Sum(nil)[:12]); got != x.hash {
			t.Errorf("%s: hash %s, was %s", name, got, x.hash)
		}
		var p Position
		if err := json.Unmarshal([]byte(x.position), &p); err != nil || !reflect.DeepEqual(p, l.Position()) {
			t.Errorf("%s: position %s, was %s (%v)", name, must(json.Marshal(l.Position())), x.position, err)
		}
	}
}

// What is held out of given text does not change: the sets of three sources, by pieces and by documents, hashed when
// the choice was fixed. Another choice would train on what earlier results held out.
func TestHeldOutStaysAsItWas(t *testing.T) {
	src := []Source{texts{docs: []string{numbered(0, 9000)}}, randomTexts(300, 60, 2),
		texts{docs: []string{numbered(20000, 60)}}}
	for by, want := range map[string]string{ByPieces: "5c7876ae71cb845d2dae7814",
		ByDocuments: "a7015ffe17f4737d9fcf96b9"} {
		m, err := Build(t.Context(), filepath.Join(t.TempDir(), "set"), src, narrow,
			BuildOptions{HeldOut: 0.1, HeldOutBy: by})
		if err != nil || m.Hash[:24] != want {
			t.Errorf("by %s: hash %.24s, was %s; %v", by, m.Hash, want, err)
		}
	}
}

// A manifest as earlier versions stored it is read, field by field.
func TestStoredManifestIsRead(t *testing.T) {
	const sum = "00000000000000000000000000000000000000000000000000000000000000ab"
	text := `{"format": 2, "tokenizer": "tok", "vocab": 300, "eos": 299, "inputs": "in", "held_out": 0.25, "held_out_by": "pieces",
		"sources": [{"name": "a", "fingerprint": "f", "docs": 4, "tokens": 30, "held_out": 7, "repeated": 2, "skipped": {"empty": 5, "not_utf8": 6}, "weight": 3, "epochs": 1.5}],
		"shards": [{"name": "train-00000.bin", "split": "train", "part": 1, "bytes": 144, "sha256": "` + sum + `", "docs": 3, "tokens": 23},
			{"name": "valid-00000.bin", "split": "valid", "bytes": 96, "sha256": "` + sum + `", "docs": 1, "tokens": 7}],
		"docs": 4, "tokens": 30, "hash": "953dc47dcb774230190977d667cbd63e50b899d18db105821e2579dc5b7e5014"}`
	eos := int32(299)
	want := &Manifest{Format: 2, Tokenizer: "tok", Vocab: 300, EOS: &eos, Inputs: "in", HeldOut: 0.25,
		HeldOutBy: ByPieces, Docs: 4, Tokens: 30,
		Sources: []SourceInfo{{Name: "a", Fingerprint: "f", Docs: 4, Tokens: 30, HeldOut: 7, Repeated: 2,
			Skipped: Skipped{Empty: 5, NotUTF8: 6}, Share: Share{3, 1.5}}},
		Shards: []ShardInfo{{"train-00000.bin", Train, 1, 144, sum, 3, 23},
			{"valid-00000.bin", Valid, 0, 96, sum, 1, 7}},
		Hash: "953dc47dcb774230190977d667cbd63e50b899d18db105821e2579dc5b7e5014"}
	if got, err := parseManifest(manifestName, []byte(text)); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v", got, err)
	}
}
