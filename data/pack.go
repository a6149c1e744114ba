package data

// walker is a position in a sequence of documents.
type walker interface {
	here() (doc *docRef, offset uint64) // the next token, which lies inside the document
	advance(n uint64)                   // moves n tokens on, at most to the document's end
}

// pack fills one row starting at w, one document after the other, and leaves w after its last input. See [Loader.Next]
// for the contents of the slices.
func pack(w walker, eos bool, inputs, targets, starts []int32) {
	for at := 0; at < len(inputs); {
		doc, offset := w.here()
		n := int(min(uint64(len(inputs)-at), doc.len()-offset))
		seg := inputs[at : at+n]
		doc.read(seg, offset)
		start := at
		if at > 0 && eos { // a new document, after an end-of-text id
			start--
		}
		for i := range seg {
			starts[at+i] = int32(start)
		}
		copy(targets[at:], seg[1:])
		at += n
		w.advance(uint64(n))
		targets[at-1] = peek(w, eos)
	}
}

// peek is the target of the token just consumed.
func peek(w walker, eos bool) int32 {
	doc, offset := w.here()
	if offset == 0 && !eos {
		return -1
	}
	var id [1]int32
	doc.read(id[:], offset)
	return id[0]
}
