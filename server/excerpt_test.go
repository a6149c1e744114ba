package server

import (
	"context"
	"encoding/json"
	"errors"
	"net/http/httptest"
	"strings"
	"testing"
	"unicode/utf8"

	"antiphase/infer"
)

// What is cut from a client's text ends between characters, wherever the limit falls, and is marked only if it was cut.
func TestExcerptsAreText(t *testing.T) {
	for _, char := range []string{"a", "é", "漢", "😀"} {
		for shift := range 4 {
			for _, length := range []int{0, 59, 60, 61, 199, 200, 201, 1000} {
				whole := strings.Repeat("a", shift)
				for len(whole)+len(char) <= length {
					whole += char
				}
				for limit, got := range map[int]string{60: excerpt([]byte(whole)),
					200: jsonProblem(errors.New(whole))} {
					text, cut := strings.CutSuffix(got, "…")
					if !utf8.ValidString(got) || !strings.HasPrefix(whole, text) || cut != (len(whole) > limit) ||
						cut && len(text) <= limit-utf8.UTFMax || !cut && text != whole || len(text) > limit {
						t.Errorf("%d bytes of %q after %d: %q", len(whole), char, shift, got)
					}
				}
			}
		}
	}
	for text, want := range map[string]string{"\xff": "�", "a\xffb": "a�b"} {
		if got := excerpt([]byte(text)); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	var n struct{ A struct{ B int } }
	if got := jsonProblem(json.Unmarshal([]byte(`{"A":{"B":"x"}}`), &n)); got != "A.B is of another kind (string)" {
		t.Error(got)
	}
	if got := jsonProblem(json.Unmarshal([]byte(`"x"`), &n)); got != "it is of another kind (string)" {
		t.Error(got)
	}
}

// No caller and salt have the share of the prefix cache of another caller and salt, also where one name begins another.
func TestScopesDiffer(t *testing.T) {
	r := newBare(t, setup{})
	seen := map[string]string{}
	for _, who := range []string{"anyone", "key 1", "key 10", "key 101"} {
		for _, salt := range []string{"", "0", "01", "1", "key 1", "\x01"} {
			q := httptest.NewRequest("POST", "/v1/completions", nil)
			q = q.WithContext(context.WithValue(q.Context(), keyWho, who))
			c := &call{model: r.model, n: 1, reqs: []infer.Request{{IDs: []int32{1}}, {IDs: []int32{2}}}}
			if err := (&textRoutes{&r.core}).prepare(q, c, salt); err != nil {
				t.Fatal(err)
			}
			scope, name := c.reqs[0].Scope, who+" and "+salt
			if other, twice := seen[scope]; twice || c.reqs[1].Scope != scope || scope == "" {
				t.Errorf("%q has the scope %q, as %q; the second request %q", name, scope, other, c.reqs[1].Scope)
			}
			seen[scope] = name
		}
	}
}
