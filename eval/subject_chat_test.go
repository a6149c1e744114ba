package eval

import (
	"context"
	"errors"
	"strings"
	"testing"

	"antiphase/device/ref"
	"antiphase/tokenizer"
)

// In a chat template a prompt is a user's message, the answer follows it without a space, and nothing stands before the
// template's own text. Texts that are scored whole stay as they are.
func TestChatTemplate(t *testing.T) {
	s, plain := subject(t, ref.New(), "diff", 64), subject(t, ref.New(), "diff", 64)
	s.Template = func(prompt string) (string, error) {
		if prompt == "" {
			return "", errors.New("nothing to say")
		}
		return "<user>" + prompt + "<bot>", nil
	}
	framed := s.Tokenizer.Encode("<user>The sky is<bot>", tokenizer.NoTemplate)
	got, err := s.Loglikelihood(context.Background(), []Continuation{{"The sky is", "  blue"}})
	if err != nil {
		t.Fatal(err)
	}
	ids := s.Tokenizer.EncodeOrdinary(framed[:len(framed):len(framed)], "blue")
	lp := logSoftmax(t, s, ids[:len(ids)-1])
	want := 0.0
	for k := len(framed); k < len(ids); k++ {
		want += lp(k-1, ids[k])
	}
	if got[0].Tokens != 4 || !near(got[0].LogProb, want, 2e-4) {
		t.Errorf("%+v, want %g over 4", got[0], want)
	}
	if n := s.Count("The sky is"); n != len(framed) {
		t.Errorf("a prompt counts %d tokens, want %d", n, len(framed))
	}
	// The most likely of two letters after the message.
	best := 0
	if lp(len(framed)-1, s.Tokenizer.EncodeOrdinary(nil, "b")[0]) < lp(len(framed)-1,
		s.Tokenizer.EncodeOrdinary(nil, "a")[0]) {
		best = 1
	}
	if k, err := s.Choose(context.Background(), []Choice{{"The sky is", []string{" b", " a"}}}); err != nil ||
		k[0] != best {
		t.Errorf("chose %v, %v; want %d", k, err, best)
	}
	texts, err := s.GenerateUntil(context.Background(), []Generation{{Prompt: "The sky is", MaxTokens: 1}})
	top := int32(0)
	for id := range int32(s.Model.Config.Vocab) {
		if lp(len(framed)-1, id) > lp(len(framed)-1, top) {
			top = id
		}
	}
	if want := string([]rune(string(s.Tokenizer.TokenBytes(top)))); err != nil || !s.Tokenizer.Special(top) &&
		texts[0] != want {
		t.Errorf("wrote %q, %v; want %q", texts, err, want)
	}
	whole := []string{"The sky is blue today"}
	a, err1 := s.LoglikelihoodRolling(context.Background(), whole)
	b, err2 := plain.LoglikelihoodRolling(context.Background(), whole)
	if err1 != nil || err2 != nil || a[0] != b[0] {
		t.Errorf("whole texts: %+v, %+v, %v, %v", a, b, err1, err2)
	}
	if _, err := s.GenerateUntil(context.Background(), []Generation{{MaxTokens: 1}}); err == nil ||
		!strings.Contains(err.Error(), "nothing to say") {
		t.Errorf("a template that refuses: %v", err)
	}
}
