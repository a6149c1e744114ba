package infer

import (
	"fmt"
	"testing"
)

// Walks are grouped where at least half of what follows the head is shared with the one before.
func TestGroups(t *testing.T) {
	walk := func(text string) Walk {
		var ids []int32
		for _, c := range text {
			ids = append(ids, int32(c))
		}
		return Walk{IDs: ids, From: 1}
	}
	for _, c := range []struct {
		texts []string // sorted
		head  int
		want  string
	}{
		{[]string{"abcd"}, 0, "[[0]]"}, {[]string{"abcd", "abxy"}, 0, "[[0 1]]"},
		{[]string{"abcd", "axyz"}, 0, "[[0] [1]]"}, {[]string{"abcd", "abxyz"}, 0, "[[0] [1]]"},
		{[]string{"hhab", "hhac"}, 2, "[[0 1]]"}, {[]string{"hhab", "hhcd"}, 2, "[[0] [1]]"},
		{[]string{"hhabc", "hhaxy"}, 2, "[[0] [1]]"},
		{[]string{"aaaa", "aabb", "bbbb", "bbcc"}, 0, "[[0 1] [2 3]]"},
	} {
		var walks []Walk
		var order []int
		for i, x := range c.texts {
			walks, order = append(walks, walk(x)), append(order, i)
		}
		if got := fmt.Sprint(group(walks, order, c.head)); got != c.want {
			t.Errorf("%q after a head of %d: %s, want %s", c.texts, c.head, got, c.want)
		}
	}
	for _, c := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"abc", "abd", 2}, {"abc", "ab", 2}, {"abc", "abc", 3}, {"xbc", "abc", 0}} {
		if got := commonPrefix(walk(c.a).IDs, walk(c.b).IDs); got != c.want {
			t.Errorf("%q and %q share %d, want %d", c.a, c.b, got, c.want)
		}
	}
}
