package train

import (
	"fmt"
	"path/filepath"

	"antiphase/data"
	"antiphase/recipe"
	"antiphase/tokenizer"
)

// builtSet is the folder of the token set that a recipe names instead of sources; "" if it names none.
func builtSet(r recipe.Recipe) string {
	if s := r.Data.Sources; len(s) == 1 && data.IsSet(s[0].Path) {
		return s[0].Path
	}
	return ""
}

// takeSet opens a built token set, with its own tokenizer or the one that the recipe names, which must be equal.
func takeSet(dir string, r recipe.Recipe, opt *Options) (*tokenizer.Tokenizer, *data.Set, error) {
	path := r.Tokenizer.Path
	if path == "" || opt.Built {
		path = filepath.Join(dir, data.TokenizerName)
	}
	tok, err := loadTokenizer(opt.fs, path)
	if err != nil {
		return nil, nil, err
	}
	set, err := data.OpenSetFS(opt.fs, dir, true)
	if err != nil {
		return nil, nil, err
	}
	if got := set.Manifest.Tokenizer; got != tok.Hash() {
		set.Close()
		return nil, nil, &data.CorruptError{File: dir,
			Fault: fmt.Sprintf("built with the tokenizer %.12s, %s is %.12s: name the one it was built with", got,
				path, tok.Hash())}
	}
	if opt.Built { // its builder has already reported it
		return tok, set, nil
	}
	opt.Say("token set %s: %d tokens; what it holds out and its weights are its own", dir, set.Manifest.Tokens)
	return tok, set, nil
}
