package tokenizer

// template is what the post-processor puts around the ids of one text.
type template struct{ prefix, suffix []int32 }

// wrap adds the ids of an outer template: post-processors of a Sequence run one after the other.
func (t *template) wrap(prefix, suffix []int32) {
	t.prefix = append(append([]int32(nil), prefix...), t.prefix...)
	t.suffix = append(t.suffix, suffix...)
}
