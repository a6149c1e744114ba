package server

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestClockJumps: waits, deadlines and rates rest on Go's monotonic readings, which a clock that is set does not move.
// What strips them from a time, or makes a time of a number, is left to the field "created" alone. A clock cannot be
// set under a test, so the source is read.
func TestClockJumps(t *testing.T) {
	strips := regexp.MustCompile(
		`\.(Unix|UnixMilli|UnixMicro|UnixNano|UTC|Local|In|Truncate|Round|AddDate|Date|Clock)\(|time\.(Unix|UnixMilli|Date|Parse)\(`)
	created := regexp.MustCompile(`created"?: (time\.Now\(\)|m\.Created)\.Unix\(\)`)
	seen := 0
	for _, pattern := range []string{"*.go", "../infer/*.go"} {
		list, err := filepath.Glob(pattern)
		if err != nil || len(list) == 0 {
			t.Fatal(pattern, err)
		}
		for _, path := range list {
			if strings.HasSuffix(path, "_test.go") {
				continue
			}
			src, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			for n, line := range strings.Split(string(src), "\n") {
				if created.MatchString(line) {
					seen++
				} else if m := strips.FindString(line); m != "" && !strings.Contains(line, "math.") {
					t.Errorf("%s:%d: %s makes a time that follows the wall clock", path, n+1, m)
				}
			}
		}
	}
	if seen != 3 {
		t.Errorf("%d fields created, want 3", seen)
	}
}
