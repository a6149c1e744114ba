package tokenizer_test

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"antiphase/tokenizer"
)

// Train a small vocabulary, encode a text, and stream it back.
func Example() {
	docs := slices.Values([]string{strings.Repeat("low lower lowest new newer newest ", 20)})
	tok, err := tokenizer.Train(context.Background(), docs,
		tokenizer.TrainOptions{Vocab: 270, Specials: []string{"<|endoftext|>"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	ids := tok.Append(nil, "newest low<|endoftext|>")
	for _, id := range ids {
		fmt.Println(id, tok.Token(id))
	}

	s := tok.Stream(true)
	for _, id := range ids {
		fmt.Printf("%q ", s.Push(id))
	}
	fmt.Printf("%q\n", s.Flush())
	// Output:
	// 259 ne
	// 264 west
	// 261 Ġlo
	// 87 w
	// 0 <|endoftext|>
	// "ne" "west" " lo" "w" "" ""
}
