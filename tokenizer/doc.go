// Package tokenizer turns text into token ids and back, agreeing with Hugging Face `tokenizers` on a tokenizer.json.
//
// The flow of one Encode: added tokens are cut out of the text ([Tokenizer.Append]; added.go), each remaining segment
// is normalized (normalize.go) and searched again for normalized added tokens, the pre-tokenizer cuts it into words
// (pretokenize.go, scan.go), byte pair encoding turns every word into ids (bpe.go, merge.go, behind a bounded cache),
// and the post-processor's template adds its special tokens (template.go). Decoding runs the decoder chain (decode.go),
// the same one for whole texts and for streams. [Train] learns a new byte-level BPE vocabulary; [Parse], [Load] and
// [Tokenizer.Save] read and write the file.
package tokenizer
