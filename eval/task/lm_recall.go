package task

import "antiphase/eval"

// bigrams are pairs of tokens that are too frequent to count as recalled.
type bigrams map[[2]int32]bool

// frequentIn are the pairs that make up more than share of all pairs in texts. The paper (after Zoology) excludes
// frequent pairs from AR-Hit by their count in training text, and gives neither n nor the threshold; ours are n = 2 and
// a share of the evaluated text.
func frequentIn(s *eval.Subject, texts []string, share float64) bigrams {
	lists := make([][]int32, len(texts))
	for i, text := range texts {
		lists[i] = s.Encode(text)
	}
	return frequentPairs(lists, share)
}

// frequentPairs are the pairs that make up more than share of all, and more than a few: in a short text every pair is a
// large share.
func frequentPairs(lists [][]int32, share float64) bigrams {
	count, total := map[[2]int32]int{}, 0
	for _, ids := range lists {
		for t := 1; t < len(ids); t++ {
			count[[2]int32{ids[t-1], ids[t]}]++
			total++
		}
	}
	const few = 2
	out := bigrams{}
	for p, n := range count {
		if float64(n) > max(few, share*float64(total)) {
			out[p] = true
		}
	}
	return out
}

// recalled reports for each token whether it ends a pair that occurred earlier in its window and is not frequent. A
// window begins where positions restart; it may include earlier tokens of the list.
func recalled(list []eval.TokenLoss, frequent bigrams) []bool {
	out := make([]bool, len(list))
	seen := bigrams{}
	for t, x := range list {
		if t == 0 || x.Position != list[t-1].Position+1 {
			clear(seen)
			for k := max(t-x.Position+1, 1); k < t; k++ {
				seen[[2]int32{list[k-1].ID, list[k].ID}] = true
			}
		}
		if x.Position == 1 { // the token before it may not be in the list
			continue
		}
		p := [2]int32{list[t-1].ID, x.ID}
		out[t] = seen[p] && !frequent[p]
		seen[p] = true
	}
	return out
}

// recall stores the loss on recallable tokens (AR-Hit) and on the others.
func recall(a *eval.Answer, list []eval.TokenLoss, frequent bigrams) {
	var sum, n [2]float64
	for t, hit := range recalled(list, frequent) {
		k := 0
		if hit {
			k = 1
		}
		sum[k] += list[t].Loss
		n[k]++
	}
	a.Put("others", sum[0], n[0])
	a.Put("ar_hit", sum[1], n[1])
}
