package server

import "net/http"

// tokenRoutes convert between text and ids.
type tokenRoutes struct{ *core }

// tokenize converts text or a conversation to ids, as a completion or a chat would.
func (t *tokenRoutes) tokenize(w http.ResponseWriter, r *http.Request) {
	reply, err := t.tokens(w, r)
	if err != nil {
		t.fail(w, r, err)
		return
	}
	t.json(w, http.StatusOK, reply)
}

func (t *tokenRoutes) tokens(w http.ResponseWriter, r *http.Request) (any, error) {
	o, err := t.open(w, r)
	if err != nil {
		return nil, err
	}
	m := o.model
	var ids []int32
	if _, chat := o.raw("messages"); chat {
		talk := o.conversation()
		talk.long = true
		o.ignore("return_token_strs", "with_pieces")
		if err := o.finish(); err != nil {
			return nil, err
		}
		if ids, err = m.render(talk); err != nil {
			return nil, err
		}
	} else {
		text, special := o.text("prompt"), true
		if _, ok := o.raw("prompt"); !ok { // llama.cpp's name of the field
			if _, ok := o.raw("content"); !ok {
				o.refuse("prompt", "is missing, must be a string (or give messages)")
			}
			text, special = o.text("content"), o.flag("add_special", false)
		}
		special = o.flag("add_special_tokens", special)
		o.ignore("return_token_strs", "with_pieces", "parse_special")
		if err := o.finish(); err != nil {
			return nil, err
		}
		ids = m.encode(text, special)
	}
	if ids == nil {
		ids = []int32{}
	}
	reply := map[string]any{"tokens": ids, "count": len(ids), "max_model_len": m.Context}
	if o.flag("return_token_strs", false) || o.flag("with_pieces", false) {
		list := make([]string, len(ids))
		for i, id := range ids {
			list[i], _ = m.spell(id)
		}
		reply["token_strs"] = list
	}
	if o.err != nil {
		return nil, o.err
	}
	return reply, nil
}

// detokenize converts ids to text, including special tokens.
func (t *tokenRoutes) detokenize(w http.ResponseWriter, r *http.Request) {
	o, err := t.open(w, r)
	var ids []int32
	if err == nil {
		var given bool
		if ids, given = o.ids("tokens", "a list of token ids"); !given {
			o.refuse("tokens", "is missing, must be a list of token ids")
		}
		if bad := o.model.checkIDs("tokens", ids); bad != nil && o.err == nil {
			o.err = bad
		}
		err = o.finish()
	}
	if err != nil {
		t.fail(w, r, err)
		return
	}
	text := o.model.Tokenizer.Decode(ids, false)
	t.json(w, http.StatusOK, map[string]string{"prompt": text, "content": text})
}

// info is the first request of a remote tokenizer.
func (t *tokenRoutes) info(w http.ResponseWriter, r *http.Request) {
	m, err := t.models.find(r.URL.Query().Get("model"))
	if e := t.calls.unavailable(); e != nil {
		err = e
	}
	if err != nil {
		t.fail(w, r, err)
		return
	}
	name := func(id int32, ok bool) any {
		if !ok {
			return nil
		}
		return m.Tokenizer.Token(id)
	}
	info := map[string]any{"model": m.ID, "vocab_size": m.Tokenizer.Vocab(), "max_model_len": m.Context,
		"chat_template": nil, "bos_token": name(m.Tokenizer.BOS()), "eos_token": name(m.Tokenizer.EOS()),
		"pad_token": name(m.Tokenizer.Pad())}
	if len(m.eos) > 0 {
		info["eos_token"] = m.Tokenizer.Token(m.eos[0])
	}
	if m.first >= 0 {
		info["bos_token"] = m.Tokenizer.Token(m.first)
	}
	if m.Template != nil {
		info["chat_template"] = m.Template.Source()
	}
	t.json(w, http.StatusOK, info)
}
