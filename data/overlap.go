package data

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Overlaps describes sources that share text, one sentence for each group. The held-out split drops equal pieces from
// training only if they are cut at the same places, so text held out of one such source may be trained on in another.
// specs are the names to print, one per source.
func Overlaps(specs []string, src []Source) []string {
	return append(sharedSeeds(specs, src), sharedFiles(specs, src)...)
}

// sharedSeeds finds generators with equal seeds and a common kind of document, one group after the other. Such
// documents begin with the same draws and differ little, whatever the other options are.
func sharedSeeds(specs []string, src []Source) (list []string) {
	seeds := map[uint64]bool{}
	for _, s := range src {
		if g, ok := s.(*Synthetic); ok {
			seeds[g.Seed] = true
		}
	}
	free := uint64(1)
	for seeds[free] {
		free++
	}
	named := make([]bool, len(src))
	for i, s := range src {
		a, ok := s.(*Synthetic)
		if !ok || named[i] {
			continue
		}
		group := []int{i}
		for k := 0; k < len(group); k++ {
			for j := range src {
				b, ok := src[j].(*Synthetic)
				if ok && !slices.Contains(group, j) && b.Seed == a.Seed && src[group[k]].(*Synthetic).sharesKind(b) {
					group, named[j] = append(group, j), true
				}
			}
		}
		if slices.Sort(group); len(group) > 1 {
			var names []string
			for _, j := range group {
				names = append(names, specs[j])
			}
			list = append(list, fmt.Sprintf("sources %s have the same seed %d and nearly the same documents, so text "+
				"held out of one is trained on in the other; give each its own seed, such as seed=%d",
				enumerate(names), a.Seed, free))
		}
	}
	return list
}

func (s *Synthetic) sharesKind(o *Synthetic) bool {
	for kind, weight := range s.Mix {
		if weight > 0 && o.Mix[kind] > 0 {
			return true
		}
	}
	return false
}

// sharedFiles finds files that two sources read.
func sharedFiles(specs []string, src []Source) (list []string) {
	type pair struct{ a, b int }
	var pairs []pair
	first := map[string]int{} // source that reads the file
	example, count := map[pair]string{}, map[pair]int{}
	for i, s := range src {
		f, ok := s.(*files)
		if !ok {
			continue
		}
		for _, p := range f.paths {
			path := filepath.Join(f.root, p)
			real, err := unlinked(path)
			if err != nil {
				continue // reading it gives the error
			}
			j, seen := first[real]
			if !seen {
				first[real] = i
				continue
			}
			if at := (pair{j, i}); j != i {
				if count[at]++; count[at] == 1 {
					pairs, example[at] = append(pairs, at), path
				}
			}
		}
	}
	for _, at := range pairs {
		what := example[at]
		if n := count[at] - 1; n > 0 {
			what += " and " + strconv.Itoa(n) + " more"
		}
		list = append(list, fmt.Sprintf(
			"sources %s both read %s, so text held out of one may be trained on in the other; name each file once",
			enumerate([]string{specs[at.a], specs[at.b]}), what))
	}
	return list
}

// enumerate lists names in a sentence.
func enumerate(names []string) string {
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " and " + names[last]
}
