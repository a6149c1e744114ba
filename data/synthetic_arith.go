package data

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// arithDocument is lines of arithmetic on numbers up to 99, small enough to be learned.
func arithDocument(r *rand.Rand, n int) string {
	var b strings.Builder
	for {
		line := arithLine(r)
		if b.Len() > 0 {
			line = "\n" + line
		}
		if b.Len() > 0 && b.Len()+len(line) > n {
			return b.String()
		}
		b.WriteString(line)
	}
}

func arithLine(r *rand.Rand) string {
	x, y := r.IntN(100), r.IntN(100)
	switch r.IntN(4) {
	case 0:
		return fmt.Sprintf("%d + %d = %d", x, y, x+y)
	case 1:
		return fmt.Sprintf("%d - %d = %d", max(x, y), min(x, y), max(x, y)-min(x, y))
	case 2:
		if x == y {
			return fmt.Sprintf("%d is equal to %d", x, y)
		}
		return fmt.Sprintf("%d is %s than %d", x, map[bool]string{true: "greater", false: "less"}[x > y], y)
	}
	step := 1 + r.IntN(9)
	return fmt.Sprintf("count by %d: %d %d %d %d %d", step, x, x+step, x+2*step, x+3*step, x+4*step)
}
