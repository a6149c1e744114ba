package infer

import (
	"context"
	"slices"

	"antiphase/model"
)

// Walk is a sequence to score: the logits that predict its tokens at index From and later are shown. With Grow > 0 the
// callback may append up to Grow tokens at the end.
type Walk struct {
	IDs  []int32
	From int // at least 1
	Grow int
}

// Show receives the logits that predict token t of walk i. After the last token of a walk that may grow it returns the
// next token and true to continue.
type Show func(i, t int, logits []float32) (next int32, more bool)

const (
	sharedPage   = 32      // positions per KV page
	sharedRows   = 512     // least number of rows per step
	sharedLogits = 1 << 22 // logits read per step; bounds host memory for any vocabulary
	SharedBytes  = 1 << 29 // default size of the KV cache, unless a single sequence needs more
)

// Shared scores many sequences with common prefixes and computes each prefix once. Three kinds are shared: the prefix
// of all sequences (the head, whose KV pages every slot's table points to), the prefix that a sequence shares with its
// predecessor in the same slot (sequences are sorted, and a slot takes the sequences of one group in turn), and the
// head of an earlier call (many-shot prompts that grow). The cache is kept between calls until Free.
type Shared struct {
	// Whole runs every sequence alone in one pass from its first token, and again for every token it grows by. It is
	// for models whose results depend on which rows are computed together, such as one that quantises a sequence's
	// logits with one scale.
	Whole bool

	m     *model.Model
	cache *model.Cache
	head  []int32 // tokens in the shared pages, a whole number of pages
	room  int     // number of shared pages
	own   int     // private pages per slot

	rows   model.Rows
	shown  []shownRow // of each wanted row
	logits []float32
}

// shownRow is a wanted row: the logits that predict token t of walk i.
type shownRow struct{ slot, t int }

// lane is the state of one slot.
type lane struct {
	queue []int   // pending walks of its group
	walk  int     // −1: idle
	ids   []int32 // tokens of the walk, including grown ones
	pos   int     // rows already run
	have  []int32 // tokens in the slot's cache
}

// NewShared returns a scorer for m.
func NewShared(m *model.Model) *Shared { return &Shared{m: m} }

// Free releases the cache. Call it before changing the model's weights: keys of earlier prompts are reused.
func (f *Shared) Free() {
	if f.cache != nil {
		f.cache.Free()
	}
	f.cache, f.head = nil, nil
}

// Bytes is the size of the cache.
func (f *Shared) Bytes() int {
	if f.cache == nil {
		return 0
	}
	return (f.room + f.cache.Slots*f.own) * sharedPage * f.m.CacheBytes()
}

// Run shows every wanted row of every walk once, with at most slots sequences in flight.
func (f *Shared) Run(ctx context.Context, walks []Walk, slots int, show Show) error {
	if len(walks) == 0 {
		return nil
	}
	order := make([]int, len(walks))
	longest, least := 0, len(walks[0].IDs)
	for i, w := range walks {
		order[i] = i
		longest = max(longest, len(w.IDs)+w.Grow)
		least = min(least, w.From-1) // the row before the first wanted token must be run
	}
	slices.SortStableFunc(order, func(a, b int) int { return slices.Compare(walks[a].IDs, walks[b].IDs) })
	first, last := walks[order[0]].IDs, walks[order[len(order)-1]].IDs
	head := first[:min(commonPrefix(first, last), least)/sharedPage*sharedPage]
	if f.Whole {
		head = nil
	}
	if len(walks) == 1 { // nothing to share except an earlier head
		head = head[:commonPrefix(head, f.head)/sharedPage*sharedPage]
	}
	groups := group(walks, order, len(head))
	if f.Whole {
		groups = slices.Collect(slices.Chunk(order, 1))
	}
	slots = f.reserve(len(head), longest, min(slots, len(groups)))
	if err := f.plant(ctx, head, slots, (longest+sharedPage-1)/sharedPage); err != nil {
		return err
	}
	lanes := make([]lane, slots)
	for s := range lanes {
		lanes[s].walk = -1
	}
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		groups = f.plan(walks, lanes, groups)
		if len(f.rows.IDs) == 0 {
			return nil
		}
		if err := f.step(walks, lanes, show); err != nil {
			return err
		}
	}
}

// commonPrefix is the length of the longest common prefix.
func commonPrefix(a, b []int32) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// group splits the sorted walks wherever a walk shares less than half of its tokens after the head with its
// predecessor.
func group(walks []Walk, order []int, head int) [][]int {
	var out [][]int
	for k, i := range order {
		if k > 0 && 2*(commonPrefix(walks[order[k-1]].IDs, walks[i].IDs)-head) >= len(walks[i].IDs)-head {
			out[len(out)-1] = append(out[len(out)-1], i)
		} else {
			out = append(out, []int{i})
		}
	}
	return out
}

// reserve allocates a cache for a head and slots of longest positions, and returns how many slots fit.
func (f *Shared) reserve(head, longest, slots int) int {
	pages := func(n int) int { return (n + sharedPage - 1) / sharedPage }
	room, own := pages(head), pages(longest)-head/sharedPage
	slots = sharedSlots(slots, room, own, sharedPage*f.m.CacheBytes())
	if f.cache == nil || f.room < room || f.own < own || f.cache.Slots < slots || f.cache.PagesOfSlot < room+own {
		if f.cache != nil && f.room > 0 { // a growing head will grow again
			room = min(2*room, pages(f.m.Config.Context))
		}
		f.Free()
		f.room, f.own = room, own
		f.cache = f.m.NewCache(room+slots*own, sharedPage, slots, max(pages(f.m.Config.Context), room+own))
	}
	return slots
}

// sharedSlots is how many of slots fit into SharedBytes besides room shared pages, with own pages each; at least one.
func sharedSlots(slots, room, own, pageBytes int) int {
	return max(1, min(slots, (SharedBytes/pageBytes-room)/own))
}

// plant computes the missing part of the head into the shared pages and fills every slot's page table.
func (f *Shared) plant(ctx context.Context, head []int32, slots, pages int) error {
	shared := len(head) / sharedPage
	for s := range slots {
		for i := range shared {
			f.cache.Assign(s, i, int32(i))
		}
		for i := range pages - shared {
			f.cache.Assign(s, shared+i, int32(f.room+s*f.own+i))
		}
	}
	from := commonPrefix(head, f.head) / sharedPage * sharedPage
	f.head = f.head[:from:from] // until the rest is computed
	for from < len(head) {
		if err := ctx.Err(); err != nil {
			return err
		}
		f.rows = model.Rows{IDs: f.rows.IDs[:0], Slots: f.rows.Slots[:0], Pos: f.rows.Pos[:0]}
		for ; from < len(head) && len(f.rows.IDs) < f.most(); from++ {
			f.row(0, head[from], from)
		}
		if err := f.cache.Step(f.rows, nil); err != nil {
			return err
		}
	}
	f.head = append(f.head, head[len(f.head):]...)
	return nil
}

// most is the number of rows per step: more if the device prefers large products.
func (f *Shared) most() int { return max(sharedRows, f.m.PromptRows()) }

func (f *Shared) row(slot int, id int32, pos int) {
	f.rows.IDs = append(f.rows.IDs, id)
	f.rows.Slots = append(f.rows.Slots, int32(slot))
	f.rows.Pos = append(f.rows.Pos, int32(pos))
}

// plan collects the rows of the next step: as many of every slot's walk as fit.
func (f *Shared) plan(walks []Walk, lanes []lane, groups [][]int) [][]int {
	f.rows = model.Rows{IDs: f.rows.IDs[:0], Slots: f.rows.Slots[:0], Pos: f.rows.Pos[:0], Want: f.rows.Want[:0]}
	f.shown = f.shown[:0]
	wants, most := max(1, sharedLogits/f.m.Config.Vocab), f.most()
	for s := range lanes {
		g := &lanes[s]
		if g.walk < 0 {
			if len(g.queue) == 0 && len(groups) > 0 {
				g.queue, groups = groups[0], groups[1:]
			}
			if len(g.queue) == 0 {
				continue
			}
			g.begin(walks, len(f.head))
			if f.Whole {
				g.pos = 0
			}
		}
		w := &walks[g.walk]
		if f.Whole {
			f.whole(s, g, w, most)
			continue
		}
		for g.pos < len(g.ids) && len(f.rows.IDs) < most {
			t := g.pos + 1 // the token that this row predicts
			wanted := t >= w.From && (t < len(g.ids) || w.Grow > 0)
			if wanted && len(f.shown) == wants {
				break
			}
			if wanted {
				f.rows.Want = append(f.rows.Want, int32(len(f.rows.IDs)))
				f.shown = append(f.shown, shownRow{s, t})
			}
			f.row(s, g.ids[g.pos], g.pos)
			g.pos++
			if t >= len(g.ids)-1 && w.Grow == 0 { // the row of the last token is not wanted
				g.pos = len(g.ids)
			}
		}
	}
	return groups
}

// whole plans all rows of a lane's sequence, unless the step is already full, and requests those that have not been
// shown.
func (f *Shared) whole(slot int, g *lane, w *Walk, most int) {
	n := len(g.ids)
	if w.Grow == 0 { // the row of the last token is not wanted
		n--
	}
	if len(f.rows.IDs) > 0 && len(f.rows.IDs)+n > most {
		return
	}
	for pos := range n {
		if t := pos + 1; t >= w.From && t > g.pos {
			f.rows.Want = append(f.rows.Want, int32(len(f.rows.IDs)))
			f.shown = append(f.shown, shownRow{slot, t})
		}
		f.row(slot, g.ids[pos], pos)
	}
	g.pos = len(g.ids)
}

// begin starts the next walk of the queue after the prefix in the slot's cache.
func (g *lane) begin(walks []Walk, head int) {
	g.walk, g.queue = g.queue[0], g.queue[1:]
	w := walks[g.walk]
	g.pos = min(max(head, commonPrefix(g.have, w.IDs)), w.From-1)
	g.ids = w.IDs
}

// step computes the planned rows and shows the wanted ones.
func (f *Shared) step(walks []Walk, lanes []lane, show Show) error {
	vocab := f.m.Config.Vocab
	n := len(f.rows.Want) * vocab
	f.logits = slices.Grow(f.logits[:0], n)[:n]
	if err := f.cache.Step(f.rows, f.logits); err != nil {
		return err
	}
	if err := f.m.Device().Sync(); err != nil {
		return err
	}
	for k, r := range f.shown {
		g := &lanes[r.slot]
		next, more := show(g.walk, r.t, f.logits[k*vocab:(k+1)*vocab])
		if end := len(walks[g.walk].IDs) + walks[g.walk].Grow; r.t == len(g.ids) && more && r.t < end {
			g.ids = append(slices.Clip(g.ids), next)
		}
	}
	for s := range lanes {
		if g := &lanes[s]; g.walk >= 0 && g.pos >= len(g.ids) {
			g.have = g.ids
			if walks[g.walk].Grow == 0 { // the last token was not run
				g.have = g.ids[:len(g.ids)-1]
			}
			g.walk = -1
		}
	}
	return nil
}
