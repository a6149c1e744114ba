package data

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// categories are the hidden classes of shots documents: the kind of a sentence's noun determines its label.
var categories = [][]string{foods, animals, tools, clothes, trees, metals}

// Shots is a many-shot labelling task: examples, then one text to label. Prompt ends right before the space and the
// label.
type Shots struct {
	Prompt string
	Answer string
	Labels []string // every label of the task
}

// ShotOptions size a task. Zero values mean the defaults.
type ShotOptions struct {
	Classes int // 2 to 6; 0: 2
	Bytes   int // approximate length of Prompt; 0: 1024
}

// NewShots draws a task. The assignment of made-up words to classes of nouns is new in each task, so the rule can only
// be inferred from the examples. They cycle through the classes in random order, each class at least once.
//
//	Text: one small red fox
//	Label: dax
func NewShots(r *rand.Rand, opt ShotOptions) Shots {
	classes := opt.Classes
	if classes == 0 {
		classes = 2
	}
	if classes < 2 || classes > len(categories) {
		// Options come from code; the spec parser checks those that users write.
		panic(fmt.Sprintf("data: shots with %d classes, want 2 to %d", classes, len(categories)))
	}
	n := opt.Bytes
	if n == 0 {
		n = 1024
	}
	nouns := sample(r, categories, classes)
	s := Shots{Labels: sample(r, labels, classes)}
	var b strings.Builder
	for done := false; !done; {
		for _, c := range r.Perm(classes) {
			fmt.Fprintf(&b, "Text: %s\nLabel: %s\n", shotText(r, nouns[c]), s.Labels[c])
		}
		// Another round must leave space for the question.
		done = b.Len()+(classes+1)*len("Text: this small yellow hammer\nLabel: blick\n") > n
	}
	c := r.IntN(classes)
	fmt.Fprintf(&b, "Text: %s\nLabel:", shotText(r, nouns[c]))
	s.Prompt, s.Answer = b.String(), s.Labels[c]
	return s
}

func shotText(r *rand.Rand, nouns []string) string {
	return fmt.Sprintf("%s %s %s %s", pick(r, []string{"this", "the", "one"}),
		pick(r, []string{"small", "big", "old", "new"}), pick(r, colours), pick(r, nouns))
}

func shotsDocument(r *rand.Rand, n int) string {
	s := NewShots(r, ShotOptions{Classes: 2 + r.IntN(len(categories)-1), Bytes: n})
	return s.Prompt + " " + s.Answer
}
