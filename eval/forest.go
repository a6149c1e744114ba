package eval

import (
	"context"
	"slices"

	"antiphase/model"
)

// walk is a sequence to be run through the model: the logits that predict tokens from on are looked at. With room for more
// tokens than ids it may be grown by what is seen at its end.
type walk struct {
	ids  []int32
	from int // at least 1
	grow int // tokens that may be appended
}

// see is shown the logits that predict token t of walk i. Behind the last token of a walk that may grow it says how to go on.
type see func(i, t int, logits []float32) (next int32, more bool)

const (
	forestPage   = 32      // positions per KV page
	forestRows   = 512     // rows per step, at least
	forestLogits = 1 << 22 // logits read per step, which bounds the host's memory whatever the vocabulary
	forestBytes  = 1 << 29 // of KV cache, where not even one sequence needs more
)

// forest runs many sequences that begin alike. Three things are computed once: the beginning that all have in common (the head,
// whose KV pages every slot's table points to), what a sequence shares with the one before it in its slot (sequences are sorted, and
// a slot takes those of one group in turn), and a head that an earlier call had (many-shot prompts that grow by shots).
type forest struct {
	m     *model.Model
	cache *model.Cache
	head  []int32 // tokens in the shared pages, a whole number of pages
	room  int     // shared pages
	own   int     // pages of each slot's own

	rows   model.Rows
	shown  []shownRow // of each wanted row
	logits []float32
}

// shownRow is a wanted row: the logits that predict token t of walk i.
type shownRow struct{ slot, t int }

// grove is one slot's state.
type grove struct {
	queue []int   // walks of its group still to come
	walk  int     // −1: idle
	ids   []int32 // of the walk, grown as it goes
	pos   int     // rows run
	have  []int32 // what the slot's cache holds
}

func (f *forest) free() {
	if f.cache != nil {
		f.cache.Free()
	}
	f.cache, f.head = nil, nil
}

// run shows every wanted row of every walk; slots bounds how many go on side by side.
func (f *forest) run(ctx context.Context, walks []walk, slots int, show see) error {
	if len(walks) == 0 {
		return nil
	}
	order := make([]int, len(walks))
	longest, least := 0, len(walks[0].ids)
	for i, w := range walks {
		order[i] = i
		longest = max(longest, len(w.ids)+w.grow)
		least = min(least, w.from-1) // the row before the first wanted token must be run
	}
	slices.SortStableFunc(order, func(a, b int) int { return slices.Compare(walks[a].ids, walks[b].ids) })
	first, last := walks[order[0]].ids, walks[order[len(order)-1]].ids
	head := first[:min(common(first, last), least)/forestPage*forestPage]
	if len(walks) == 1 { // nothing to share but what is there already
		head = head[:common(head, f.head)/forestPage*forestPage]
	}
	groups := group(walks, order, len(head))
	slots = f.reserve(len(head), longest, min(slots, len(groups)))
	if err := f.plant(ctx, head, slots, (longest+forestPage-1)/forestPage); err != nil {
		return err
	}
	groves := make([]grove, slots)
	for s := range groves {
		groves[s].walk = -1
	}
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		groups = f.plan(walks, groves, groups)
		if len(f.rows.IDs) == 0 {
			return nil
		}
		if err := f.step(walks, groves, show); err != nil {
			return err
		}
	}
}

// common is the length of the longest common beginning.
func common(a, b []int32) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// group cuts the sorted walks where the next shares less than half of itself, behind the head, with the one before.
func group(walks []walk, order []int, head int) [][]int {
	var out [][]int
	for k, i := range order {
		if k > 0 && 2*(common(walks[order[k-1]].ids, walks[i].ids)-head) >= len(walks[i].ids)-head {
			out[len(out)-1] = append(out[len(out)-1], i)
		} else {
			out = append(out, []int{i})
		}
	}
	return out
}

// reserve sees to a cache for a head and slots of longest positions, and says how many slots there is memory for.
func (f *forest) reserve(head, longest, slots int) int {
	pages := func(n int) int { return (n + forestPage - 1) / forestPage }
	room, own := pages(head), pages(longest)-head/forestPage
	most := forestBytes / (forestPage * f.m.CacheBytes())
	slots = max(1, min(slots, (most-room)/own))
	if f.cache == nil || f.room < room || f.own < own || f.cache.Slots < slots || f.cache.PagesOfSlot < room+own {
		if f.cache != nil && f.room > 0 { // it grows: the next will need more still
			room = min(2*room, pages(f.m.Config.Context))
		}
		f.free()
		f.room, f.own = room, own
		f.cache = f.m.NewCache(room+slots*own, forestPage, slots, max(pages(f.m.Config.Context), room+own))
	}
	return slots
}

// plant puts the head into the shared pages, as far as it is not there, and lays out every slot's table.
func (f *forest) plant(ctx context.Context, head []int32, slots, pages int) error {
	shared := len(head) / forestPage
	for s := range slots {
		for i := range shared {
			f.cache.Assign(s, i, int32(i))
		}
		for i := range pages - shared {
			f.cache.Assign(s, shared+i, int32(f.room+s*f.own+i))
		}
	}
	from := common(head, f.head) / forestPage * forestPage
	f.head = f.head[:from:from] // until the rest is there
	for from < len(head) {
		if err := ctx.Err(); err != nil {
			return err
		}
		f.rows = model.Rows{IDs: f.rows.IDs[:0], Slots: f.rows.Slots[:0], Pos: f.rows.Pos[:0]}
		for ; from < len(head) && len(f.rows.IDs) < f.most(); from++ {
			f.row(0, head[from], from)
		}
		if err := f.m.Step(f.cache, f.rows, nil); err != nil {
			return err
		}
	}
	f.head = append(f.head, head[len(f.head):]...)
	return nil
}

// most is how many rows a step takes: more where the device makes large products of them.
func (f *forest) most() int { return max(forestRows, f.m.PromptRows()) }

func (f *forest) row(slot int, id int32, pos int) {
	f.rows.IDs = append(f.rows.IDs, id)
	f.rows.Slots = append(f.rows.Slots, int32(slot))
	f.rows.Pos = append(f.rows.Pos, int32(pos))
}

// plan writes down the rows of the next step: of every slot's walk as many as fit.
func (f *forest) plan(walks []walk, groves []grove, groups [][]int) [][]int {
	f.rows = model.Rows{IDs: f.rows.IDs[:0], Slots: f.rows.Slots[:0], Pos: f.rows.Pos[:0], Want: f.rows.Want[:0]}
	f.shown = f.shown[:0]
	wants, most := max(1, forestLogits/f.m.Config.Vocab), f.most()
	for s := range groves {
		g := &groves[s]
		if g.walk < 0 {
			if len(g.queue) == 0 && len(groups) > 0 {
				g.queue, groups = groups[0], groups[1:]
			}
			if len(g.queue) == 0 {
				continue
			}
			g.begin(walks, len(f.head))
		}
		w := &walks[g.walk]
		for g.pos < len(g.ids) && len(f.rows.IDs) < most {
			t := g.pos + 1 // the token that this row predicts
			wanted := t >= w.from && (t < len(g.ids) || w.grow > 0)
			if wanted && len(f.shown) == wants {
				break
			}
			if wanted {
				f.rows.Want = append(f.rows.Want, int32(len(f.rows.IDs)))
				f.shown = append(f.shown, shownRow{s, t})
			}
			f.row(s, g.ids[g.pos], g.pos)
			g.pos++
			if t >= len(g.ids)-1 && w.grow == 0 { // nobody wants what follows the last token
				g.pos = len(g.ids)
			}
		}
	}
	return groups
}

// begin starts the next walk of the queue behind what the slot's cache has of it.
func (g *grove) begin(walks []walk, head int) {
	g.walk, g.queue = g.queue[0], g.queue[1:]
	w := walks[g.walk]
	g.pos = min(max(head, common(g.have, w.ids)), w.from-1)
	g.ids = w.ids
}

// step computes the planned rows and shows the wanted ones.
func (f *forest) step(walks []walk, groves []grove, show see) error {
	vocab := f.m.Config.Vocab
	n := len(f.rows.Want) * vocab
	f.logits = slices.Grow(f.logits[:0], n)[:n]
	if err := f.m.Step(f.cache, f.rows, f.logits); err != nil {
		return err
	}
	if err := f.m.Device().Sync(); err != nil {
		return err
	}
	for k, r := range f.shown {
		g := &groves[r.slot]
		next, more := show(g.walk, r.t, f.logits[k*vocab:(k+1)*vocab])
		if end := len(walks[g.walk].ids) + walks[g.walk].grow; r.t == len(g.ids) && more && r.t < end {
			g.ids = append(slices.Clip(g.ids), next)
		}
	}
	for s := range groves {
		if g := &groves[s]; g.walk >= 0 && g.pos >= len(g.ids) {
			g.have = g.ids
			if walks[g.walk].grow == 0 { // the last token was not run
				g.have = g.ids[:len(g.ids)-1]
			}
			g.walk = -1
		}
	}
	return nil
}
