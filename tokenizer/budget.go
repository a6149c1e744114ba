package tokenizer

import (
	"fmt"
	"strings"
	"sync/atomic"
	"time"
	"unicode"

	"github.com/dlclark/regexp2/v2"
)

// A tokenizer.json is untrusted, and its expressions and replacements are small programs. They run with a time and
// memory budget. Parse tries them on short texts that expose bad ones. If one passes there but exceeds its budget on a
// real text, that is recorded (Err).
const (
	trialTime   = time.Second      // for a search in a trial text, which takes microseconds
	searchTime  = 10 * time.Second // to find the next match in a text of any length
	trialLength = 48               // characters of a trial text: 2⁴⁸ ways to fail are noticed
	maxGrowth   = 256              // maximum growth factor of a text by normalizing
	freeGrowth  = 1 << 20          // bytes that any text may grow to
)

// budget belongs to one tokenizer and is shared by its patterns.
type budget struct {
	over   atomic.Pointer[error] // the first overrun
	probes []string              // texts that the normalizers replace or produce
}

func (b *budget) overrun(format string, args ...any) {
	err := fmt.Errorf(format, args...)
	b.over.CompareAndSwap(nil, &err)
}

// err returns the first overrun.
func (b *budget) err() error {
	if b == nil {
		return nil
	}
	if e := b.over.Load(); e != nil {
		return *e
	}
	return nil
}

// Err reports that a pattern or a normalizer exceeded its budget on some text. Earlier results remain valid. The
// current text was encoded with its rest unmatched, so no text is lost, but its ids differ from those of other
// programs.
func (t *Tokenizer) Err() error { return t.budget.err() }

// room is the length that a text of n bytes may grow to.
func room(n int) int { return max(freeGrowth, n*maxGrowth) }

// tryRegex searches texts on which expressions with unbounded backtracking take exponential time: runs of characters
// from the expression and of common ones, alone and in pairs, followed by something else.
func tryRegex(expr string, re *regexp2.Regexp) error {
	re.MatchTimeout = trialTime
	defer func() { re.MatchTimeout = searchTime }()
	for _, unit := range trialUnits(expr) {
		text := strings.Repeat(unit, trialLength/len([]rune(unit)))
		for _, s := range []string{text + "\x00", text + "!", text} {
			if _, err := re.FindAllStringIndex(s, -1); err != nil {
				return fmt.Errorf("it takes longer than %v on %d × %q: %w", trialTime, trialLength, unit, err)
			}
		}
	}
	return nil
}

// trialUnits are the strings that trial texts repeat.
func trialUnits(expr string) []string {
	units := []string{"a", "A", "1", " ", "\n", ".", "é", "漢", "a ", "a1"}
	var own []string
	for _, r := range expr {
		if len(own) < 8 && (unicode.IsLetter(r) || unicode.IsDigit(r) || r > 127) &&
			!strings.Contains(strings.Join(own, ""), string(r)) {
			own = append(own, string(r))
		}
	}
	units = append(units, own...)
	for _, a := range own {
		for _, b := range own {
			if a != b {
				units = append(units, a+b)
			}
		}
	}
	return units
}

// tryNormalizer rejects a chain that makes a short text long.
func (b *budget) tryNormalizer(n normalizer) error {
	if n == nil {
		return nil
	}
	for _, unit := range append(b.probes, "a", " ", "\ufdfa") {
		if unit == "" {
			continue
		}
		text := unit
		for len(text) < trialLength {
			text += unit
		}
		n(piece{text, true}, len(text)*maxGrowth)
		if err := b.err(); err != nil {
			return err
		}
	}
	return nil
}

// growth is the largest factor by which replacing p with content can lengthen a text.
func (p pattern) growth(content string) float64 {
	if p.re != nil {
		return float64(len(content) + 1) // a match may be empty
	}
	return max(1, float64(len(content))/float64(max(len(p.literal), 1)))
}

// checkDecoder rejects a chain of replacements that could turn a token of one byte into an unreasonably long text.
func checkDecoder(steps []decodeStep) error {
	growth := 1.0
	for _, s := range steps {
		if d, ok := s.(replaceDecoder); ok {
			growth *= d.re.growth(d.content)
		}
	}
	if growth > 1<<16 {
		return fmt.Errorf("its replacements can lengthen a text %.3g times; at most %d times is read", growth, 1<<16)
	}
	return nil
}
