package lab

// tiling divides T tokens into count tiles of size tokens; the last may have fewer.
type tiling struct{ tokens, size, count int }

// tiles puts as few tokens into a tile as at most rows tiles allow.
func tiles(tokens, rows int) tiling {
	size := (tokens + rows - 1) / rows
	return tiling{tokens, size, (tokens + size - 1) / size}
}

// summer reduces the rows of a map to tiles: summed over keys, averaged over queries.
type summer struct {
	tiling
	out Floats // lower triangle
	row []float64
}

func (t tiling) summer() *summer {
	return &summer{tiling: t, out: make(Floats, 0, t.count*(t.count+1)/2), row: make([]float64, t.count)}
}

// add adds the row of token t. Rows come in order.
func (s *summer) add(t int, row []float64) {
	i := t / s.size
	for k, x := range row {
		s.row[k/s.size] += x
	}
	if t++; t%s.size != 0 && t != s.tokens {
		return
	}
	n := float64(t - i*s.size)
	for j := range s.row[:i+1] {
		s.out = append(s.out, float32(s.row[j]/n))
		s.row[j] = 0
	}
}
