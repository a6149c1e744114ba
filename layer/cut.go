package layer

// Run is rows or columns [From, To) of a whole parameter.
type Run struct{ From, To int }

// cut is the part of a split parameter that a rank holds: consecutive runs of its rows or of its columns.
type cut struct {
	rows, cols int // of the whole
	byCol      bool
	runs       []Run
}

// keep reduces p to these runs of its rows or of its columns.
func (p *Param) keep(byCol bool, runs ...Run) {
	n := 0
	for _, r := range runs {
		n += r.To - r.From
	}
	p.cut = &cut{rows: p.Rows, cols: p.Cols, byCol: byCol, runs: runs}
	if byCol {
		p.Cols = n
	} else {
		p.Rows = n
	}
}

// Whole is the shape of the whole parameter; it equals Rows and Cols if the parameter is not split.
func (p *Param) Whole() (rows, cols int) {
	if p.cut == nil {
		return p.Rows, p.Cols
	}
	return p.cut.rows, p.cut.cols
}

// Held returns the rows and columns of the whole parameter that this rank holds.
func (p *Param) Held() (rows, cols []Run) {
	r, c := p.Whole()
	rows, cols = []Run{{0, r}}, []Run{{0, c}}
	switch {
	case p.cut == nil:
	case p.cut.byCol:
		cols = p.cut.runs
	default:
		rows = p.cut.runs
	}
	return rows, cols
}

// Split reports whether other ranks hold other parts of the parameter.
func (p *Param) Split() bool { return p.cut != nil }

// Take returns this rank's part of the whole parameter's values.
func (p *Param) Take(whole []float32) []float32 {
	if p.cut == nil {
		return whole
	}
	rows, cols := p.Held()
	_, width := p.Whole()
	out := make([]float32, 0, p.Rows*p.Cols)
	for _, r := range rows {
		for i := r.From; i < r.To; i++ {
			for _, c := range cols {
				out = append(out, whole[i*width+c.From:i*width+c.To]...)
			}
		}
	}
	return out
}
