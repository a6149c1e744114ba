package data

import "math"

// Ways to choose the held-out text.
const (
	ByPieces    = "pieces"    // pieces of documents, spread evenly over every source
	ByDocuments = "documents" // whole documents, chosen by a hash of their text
)

// divider decides the split of each document, or piece of it, and writes it there.
type divider interface {
	add(ids []int32, hash uint64) error // a document of the source, with its end-of-text id, and the hash of its text
	end() error                         // ends the current source
	finish() error                      // ends the last one
}

// writeFunc writes one document of a source to a split.
type writeFunc func(source int, split string, ids []int32) error

// byDocument holds out whole documents. Equal texts share a split. The document with the smallest hash is always held
// out, so that a small set also has a valid split.
type byDocument struct {
	write  writeFunc
	share  float64
	source int       // index of the current one
	held   []heldDoc // documents with the smallest hash so far, not written yet
	least  uint64    // that hash
	train  bool      // a document was written to train
}

// heldDoc is a document whose split is not decided yet.
type heldDoc struct {
	source int
	ids    []int32
}

func (d *byDocument) add(ids []int32, hash uint64) error {
	if d.share == 0 || (len(d.held) > 0 && hash > d.least) {
		return d.put(d.source, d.splitOf(hash), ids)
	}
	if hash < d.least {
		if err := d.release(d.splitOf(d.least)); err != nil {
			return err
		}
	}
	d.least = hash
	d.held = append(d.held, heldDoc{d.source, append([]int32(nil), ids...)})
	return nil
}

func (d *byDocument) splitOf(hash uint64) string {
	if float64(hash) < d.share*math.Exp2(64) {
		return Valid
	}
	return Train
}

func (d *byDocument) put(source int, split string, ids []int32) error {
	d.train = d.train || split == Train
	return d.write(source, split, ids)
}

// release writes the deferred documents.
func (d *byDocument) release(split string) error {
	for _, h := range d.held {
		if err := d.put(h.source, split, h.ids); err != nil {
			return err
		}
	}
	d.held = d.held[:0]
	return nil
}

func (d *byDocument) end() error {
	d.source++
	return nil
}

func (d *byDocument) finish() error {
	if !d.train { // one document, or copies of one
		return d.release(Train)
	}
	return d.release(Valid)
}

const (
	// pieceTokens is the approximate length of a held-out piece: long enough for context to matter, short enough that 2
	// % of a book is several pieces. A document is divided into equal pieces of two thirds to four thirds of it.
	pieceTokens = 1024
	// fewPieces is the minimum number of pieces per source; pieces are made shorter for it, down to leastPiece tokens.
	fewPieces  = 8
	leastPiece = 16
	// somePieces is the number of pieces required to hold one out.
	somePieces = 4
)

// byPiece holds out a systematic sample of each source's pieces: one in every 1/share consecutive ones, at a position
// chosen by a hash. The parts of a document on each side of the hole stay in training as separate documents. A piece is
// held out only at its first occurrence, and repetitions of it are dropped from both splits, so that nothing held out
// is trained on.
type byPiece struct {
	write writeFunc
	share float64
	eos   *int32
	left  func(source, tokens int) // called for dropped repetitions
	seen  map[uint64]bool          // hash of every piece so far; true if held out
	buf   []int32

	// Current source:
	source  int
	waiting [][]int32 // its first documents, until it has enough pieces
	tokens  int       // in them
	size    int       // of a piece; 0 if not known yet
	pieces  uint64
	stratum uint64 // number of pieces held out
	target  uint64 // the next one must not come before this piece
}

func newByPiece(write writeFunc, share float64, eos *int32, left func(source, tokens int)) *byPiece {
	return &byPiece{write: write, share: share, eos: eos, left: left, seen: map[uint64]bool{}}
}

func (d *byPiece) add(ids []int32, _ uint64) error {
	if d.size > 0 {
		return d.divide(ids)
	}
	d.waiting = append(d.waiting, append([]int32(nil), ids...))
	if d.tokens += len(ids); d.tokens < fewPieces*pieceTokens {
		return nil
	}
	return d.settle()
}

// settle chooses the piece length and the position of the first held-out piece, then divides the documents that were
// waiting.
func (d *byPiece) settle() error {
	d.size = min(max((d.tokens+fewPieces-1)/fewPieces, leastPiece), pieceTokens)
	n := uint64(0)
	for _, ids := range d.waiting {
		n += uint64(d.cuts(ids))
	}
	d.target = math.MaxUint64
	if n >= somePieces { // never the first piece: training needs one
		stride := min(n, max(uint64(1/d.share), 2))
		d.target = 1 + mix64(uint64(d.source)+1)%(stride-1)
	}
	for _, ids := range d.waiting {
		if err := d.divide(ids); err != nil {
			return err
		}
	}
	d.waiting, d.tokens = nil, 0
	return nil
}

// cuts is the number of pieces of a document.
func (d *byPiece) cuts(ids []int32) int { return max(1, (d.body(ids)+d.size/2)/d.size) }

// body is the number of tokens without the end-of-text id.
func (d *byPiece) body(ids []int32) int {
	if d.eos != nil {
		return len(ids) - 1
	}
	return len(ids)
}

// divide writes the held-out pieces and the text between them.
func (d *byPiece) divide(ids []int32) error {
	n, body, from := d.cuts(ids), d.body(ids), 0
	for i := range n {
		lo, hi := i*body/n, (i+1)*body/n
		piece := ids[lo:hi]
		hash := hashIDs(piece)
		held, old := d.seen[hash]
		hold := !old && d.pieces >= d.target
		d.seen[hash] = held || hold
		d.pieces++
		if !hold && !held {
			continue
		}
		if err := d.put(Train, ids[from:lo]); err != nil {
			return err
		}
		from = hi
		if held {
			d.left(d.source, hi-lo)
			continue
		}
		if err := d.put(Valid, piece); err != nil {
			return err
		}
		d.advance()
	}
	return d.put(Train, ids[from:body])
}

// advance moves the target to the next stratum of 1/share pieces.
func (d *byPiece) advance() {
	d.stratum++
	u := float64(mix64(uint64(d.source)<<32+d.stratum+1)>>11) / (1 << 53)
	d.target = uint64((float64(d.stratum) + u) / d.share)
}

// put writes part of a document as a separate document.
func (d *byPiece) put(split string, ids []int32) error {
	if len(ids) == 0 {
		return nil
	}
	d.buf = append(d.buf[:0], ids...)
	if d.eos != nil {
		d.buf = append(d.buf, *d.eos)
	}
	return d.write(d.source, split, d.buf)
}

// hashIDs hashes a piece of text given as ids.
func hashIDs(ids []int32) (h uint64) {
	for _, id := range ids {
		h = mix64(h + 0x9e3779b97f4a7c15 + uint64(id))
	}
	return h
}

func (d *byPiece) end() error {
	if d.size == 0 {
		if err := d.settle(); err != nil {
			return err
		}
	}
	d.source++
	d.size, d.pieces, d.stratum = 0, 0, 0
	return nil
}

func (d *byPiece) finish() error { return nil }
