package recipe

import (
	"fmt"
	"reflect"
	"testing"
)

// A pair is cut at its first equals sign, for every key and any value: SetPair does and says what Set does.
func TestPairIsCutOnce(t *testing.T) {
	values := []string{"", "1", "0.5", "true", "word", "a=b", "synthetic:docs=200,len=64", "=", "==x=",
		`["a=1","b=2@3"]`, `[{"path":"x=y","weight":2}]`, "k = v"}
	taken := 0
	for path := range byPath {
		for _, v := range values {
			for _, pair := range []string{path + "=" + v, " " + path + " =  " + v + " "} {
				var got, want Recipe
				err, other := got.SetPair(pair), want.Set(path, v)
				if fmt.Sprint(err) != fmt.Sprint(other) || !reflect.DeepEqual(got, want) {
					t.Errorf("%q: %v, Set gives %v", pair, err, other)
				}
				if err == nil {
					taken++
				}
			}
		}
	}
	if taken < 100 {
		t.Errorf("only %d pairs were accepted", taken)
	}
	for _, s := range []string{"", "train.steps", "train.steps:7"} {
		if err := new(Recipe).SetPair(s); err == nil {
			t.Errorf("%q is accepted", s)
		}
	}
	r := new(Recipe)
	if err := r.SetPair("data.sources=synthetic:docs=200"); err != nil || len(r.Data.Sources) != 1 ||
		r.Data.Sources[0].Path != "synthetic:docs=200" {
		t.Errorf("%+v, %v", r.Data.Sources, err)
	}
}
