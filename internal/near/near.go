// Package near finds the known word that a mistyped one was probably meant to be.
package near

// Word is the candidate with the smallest edit distance to s, the first of equals, and that distance.
func Word(s string, candidates []string) (string, int) {
	best, least := "", -1
	for _, c := range candidates {
		if d := Distance(s, c); least < 0 || d < least {
			best, least = c, d
		}
	}
	return best, least
}

// Close is the nearest candidate if it is near enough to suggest, otherwise "".
func Close(s string, candidates []string) string {
	if w, d := Word(s, candidates); d >= 0 && d <= max(2, min(len(s), most)/3) {
		return w
	}
	return ""
}

const most = 80 // bytes compared

// Distance is Levenshtein's; a transposition counts as one step.
func Distance(a, b string) int {
	a, b = a[:min(len(a), most)], b[:min(len(b), most)]
	before, row, next := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range a {
		next[0] = i + 1
		for j := range b {
			cost := row[j]
			if a[i] != b[j] {
				cost++
			}
			next[j+1] = min(cost, next[j]+1, row[j+1]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				next[j+1] = min(next[j+1], before[j-1]+1)
			}
		}
		before, row, next = row, next, before
	}
	return row[len(b)]
}
