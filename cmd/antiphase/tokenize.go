package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"antiphase/tokenizer"
	"antiphase/train"
)

type tokenizeFlags struct {
	tokenizer, model        string
	decode, noSpecial, json bool
}

func tokenizeVerb(a *app) *cobra.Command {
	var f tokenizeFlags
	c := &cobra.Command{
		Use:   "tokenize [TEXT]",
		Short: "Convert text to token ids, or ids to text",
		Long: `Tokenize reads text from the argument or from standard input and prints its token ids. With --decode it reads
ids, separated by white space or commas, and streams their text.`,
		Example: `  antiphase tokenize --model runs/tiny-diff "Hello world"
  antiphase tokenize --tokenizer tokenizer.json --json < text.txt
  antiphase tokenize --model runs/tiny-diff --decode "15 287 3"`,
		Args: oneText("TEXT"),
		RunE: func(_ *cobra.Command, args []string) error {
			t, err := f.openTokenizer(a)
			if err != nil {
				return err
			}
			for _, n := range t.Notes() {
				a.note("note: %s", n)
			}
			in := a.in
			if len(args) == 1 {
				in = strings.NewReader(args[0])
			} else if r, ok := a.in.(*os.File); ok && terminal(r) {
				return usage(errors.New("no text: give it as an argument or on standard input"))
			}
			if f.decode {
				return f.decodeIDs(a, t, in)
			}
			return f.encode(a, t, in)
		},
	}
	fl := c.Flags()
	fl.StringVar(&f.tokenizer, "tokenizer", "", "a tokenizer.json")
	fl.StringVarP(&f.model, "model", "m", "", modelWords)
	fl.BoolVar(&f.decode, "decode", false, "convert ids to text")
	fl.BoolVar(&f.noSpecial, "no-special", false, "neither add special tokens to a text nor show them in decoded text")
	fl.BoolVar(&f.json, "json", false, `print {"ids": […], "tokens": […]}, or {"text": …} with --decode`)
	return c
}

// openTokenizer finds the tokenizer of the flags.
func (f *tokenizeFlags) openTokenizer(a *app) (*tokenizer.Tokenizer, error) {
	if (f.tokenizer == "") == (f.model == "") {
		return nil, usage(errors.New("give --tokenizer or --model, one of them"))
	}
	if f.tokenizer != "" {
		t, err := tokenizer.Load(f.tokenizer)
		if err != nil {
			return nil, badInput{err}
		}
		return t, nil
	}
	if strings.HasPrefix(f.model, embeddedPrefix) || isPackedFile(f.model) {
		s, err := openStored(context.Background(), a, f.model)
		if err != nil {
			return nil, err
		}
		return s.Tokenizer, s.close()
	}
	dir, err := locate(f.model)
	if err != nil {
		return nil, err
	}
	if train.IsRun(dir) {
		s, err := train.Open(dir, func(w string) { a.note("warning: %s", w) })
		if err != nil {
			return nil, badInput{err}
		}
		return s.Tokenizer, s.Close()
	}
	t, err := tokenizerOf(dir)
	if err == nil && t == nil {
		err = badInput{fmt.Errorf("%s has no tokenizer.json", dir)}
	}
	return t, err
}

func (f *tokenizeFlags) encode(a *app, t *tokenizer.Tokenizer, in io.Reader) error {
	text, err := readText(in, "the text")
	if err != nil {
		return err
	}
	var opt []tokenizer.Option
	if f.noSpecial {
		opt = append(opt, tokenizer.NoTemplate)
	}
	ids := t.Encode(text, opt...)
	if err := t.Err(); err != nil {
		return badInput{fmt.Errorf("tokenizer: %w", err)}
	}
	w := bufio.NewWriter(a.out)
	if !f.json {
		sep := ""
		for _, id := range ids {
			w.WriteString(sep)
			w.WriteString(strconv.Itoa(int(id)))
			sep = " "
		}
		w.WriteByte('\n')
		return w.Flush()
	}
	out := struct {
		IDs    []int32  `json:"ids"`
		Tokens []string `json:"tokens"`
	}{IDs: ids, Tokens: make([]string, len(ids))}
	for i, id := range ids {
		out.Tokens[i] = t.Token(id)
	}
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	return errors.Join(e.Encode(out), w.Flush())
}

// decodeIDs prints text as ids arrive, in whole characters.
func (f *tokenizeFlags) decodeIDs(a *app, t *tokenizer.Tokenizer, in io.Reader) error {
	s := t.Stream(f.noSpecial)
	words := bufio.NewScanner(in)
	words.Split(splitIDs)
	var text strings.Builder
	out := io.Writer(a.out)
	if f.json {
		out = &text
	}
	for n := 0; words.Scan(); n++ {
		id, err := strconv.ParseInt(words.Text(), 10, 32)
		if err != nil || t.Token(int32(id)) == "" {
			return usage(fmt.Errorf("ids: entry %d, %q, is not a token id of this tokenizer, which has %d", n+1,
				words.Text(), t.Vocab()))
		}
		if _, err := io.WriteString(out, s.Push(int32(id))); err != nil {
			return err
		}
	}
	if err := words.Err(); err != nil {
		return usage(fmt.Errorf("ids: %w", err))
	}
	if _, err := io.WriteString(out, s.Flush()); err != nil {
		return err
	}
	if f.json {
		return a.json(map[string]string{"text": text.String()})
	}
	_, err := fmt.Fprintln(a.out)
	return err
}

// splitIDs is bufio.ScanWords that treats commas and brackets as white space, so that it accepts a JSON list.
func splitIDs(data []byte, atEOF bool) (int, []byte, error) {
	gap := func(c byte) bool { return strings.IndexByte(" \t\r\n,[]", c) >= 0 }
	begin := 0
	for begin < len(data) && gap(data[begin]) {
		begin++
	}
	for i := begin; i < len(data); i++ {
		if gap(data[i]) {
			return i + 1, data[begin:i], nil
		}
	}
	if atEOF && begin < len(data) {
		return len(data), data[begin:], nil
	}
	return begin, nil, nil
}
