package server

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"antiphase/grammar"
	"antiphase/infer"
	"antiphase/lab"
	"antiphase/layer"
	record "antiphase/metrics"
	"antiphase/tokenizer"
	"antiphase/tokenizer/chat"
)

// Every field of an attention query has its own place; what is left out is the whole model and the last token.
func TestQueryFieldByField(t *testing.T) {
	factor := 0.5
	for _, c := range []struct {
		body string
		want lab.Query
	}{
		{`{"prompt":"abcde"}`, lab.Query{IDs: []int32{97, 98, 99, 100, 101}, Layers: []int{0, 1, 2},
			Heads: []int{0, 1, 2, 3}, Maps: []string{"a1", "a2", "diff"}, Size: 256, Next: []int{4}, Top: 10}},
		{`{"prompt":[7,8,9],"layers":[2],"heads":[3,1],"maps":["a2"],"size":17,"rows":[1],"next":[0,2],"topk":64,
			"interventions":[{"layers":[1],"heads":[2],"lambda":0.5,"second":"shuffled","seed":6}]}`,
			lab.Query{IDs: []int32{7, 8, 9}, Layers: []int{2}, Heads: []int{3, 1}, Maps: []string{"a2"}, Size: 17,
				Rows: []int{1}, Next: []int{0, 2}, Top: 64,
				Interventions: []layer.Intervention{{Layers: []int{1}, Heads: []int{2}, Lambda: &factor,
					Second: "shuffled", Seed: 6}}}},
		{`{"prompt":[7],"layers":[],"heads":[],"maps":[],"next":[],"add_special_tokens":false}`,
			lab.Query{IDs: []int32{7}, Layers: []int{}, Heads: []int{}, Maps: []string{}, Size: 256,
				Next: []int{}, Top: 10}},
	} {
		o := formOf(t, c.body, infer.Sampling{})
		o.model.first, o.model.config.Arch, o.model.config.Layers, o.model.config.Heads = -1, "diff", 3, 4
		got, err := o.query()
		if err != nil {
			t.Errorf("%s: %v", c.body, err)
		} else if d := cmp.Diff(&c.want, got); d != "" {
			t.Errorf("%s: %s", c.body, d)
		}
	}
	for arch, want := range map[string]int{"transformer": 1, "diff": 2, "diff2": 2} {
		m := &Model{}
		if m.config.Arch = arch; m.softmaxes() != want || len(m.maps()) != []int{0, 1, 3}[want] {
			t.Errorf("%s: %d maps, %v", arch, m.softmaxes(), m.maps())
		}
	}
}

// A text is too long for a context at four times its longest token per position, and never below a small body.
func TestTextsThatFit(t *testing.T) {
	for _, c := range []struct{ longest, context, most int }{{10, 4096, 4 * 10 * 4096}, {1, 16, smallBody},
		{8, 2048, smallBody}, {8, 2049, 4 * 8 * 2049}} {
		m := &Model{longest: c.longest, Context: c.context}
		if err := m.fits("prompt", strings.Repeat("x", c.most)); err != nil {
			t.Errorf("%+v: %v", c, err)
		}
		err := m.fits("input", strings.Repeat("x", c.most+1))
		want := fmt.Sprintf("input has %d bytes, more than the model's context of %d tokens can hold",
			c.most+1, c.context)
		if err == nil || err.Message != want || err.Param != "input" || err.Status != 400 ||
			err.Extra["n_ctx"] != c.context {
			t.Errorf("%+v: %+v", c, err)
		}
	}
	if m := newBare(t, setup{}).model; m.longest != len("<|endoftext|>") {
		t.Errorf("the longest token has %d bytes", m.longest)
	}
}

// The server's own limit on answers holds where a request names no length, within what fits, and not for a score.
func TestDefaultLength(t *testing.T) {
	r := newRig(t, setup{template: "{{ messages[0].content }}", Config: Config{Limits: Limits{MaxTokens: 5}}})
	for _, c := range []struct {
		prompt int
		more   fieldsOf
		want   int
	}{
		{3, nil, 5}, {3, fieldsOf{"max_tokens": 9}, 9}, {125, nil, 3}, {125, fieldsOf{"max_tokens": 9}, 3},
		{123, nil, 5},
		{128, fieldsOf{"echo": true}, 0}, {3, fieldsOf{"echo": true, "max_tokens": 0}, 0},
		{3, fieldsOf{"echo": true}, 5},
	} {
		body := fieldsOf{"prompt": strings.Repeat("x", c.prompt), "ignore_eos": true}
		maps.Copy(body, c.more)
		var reply completionReply
		r.post("/v1/completions", body, &reply)
		if reply.Usage.Completion != c.want || *reply.Choices[0].Reason != "length" {
			t.Errorf("%d tokens and %v: %+v, want %d", c.prompt, c.more, reply.Usage, c.want)
		}
	}
	var reply chatReply
	r.post("/v1/chat/completions", fieldsOf{"messages": []fieldsOf{{"role": "user", "content": "x"}},
		"ignore_eos": true}, &reply)
	if reply.Usage.Completion != 5 {
		t.Errorf("a chat: %+v", reply.Usage)
	}
}

// What a template sees of messages: every role, names and ids of calls; and that the variables it gets from the server
// cannot be given by a request.
func TestWhatTemplatesSee(t *testing.T) {
	const template = `{% for m in messages %}[{{ m.role }}|{{ m.content }}|{{ m.name }}|{{ m.tool_call_id }}]{% endfor %}` +
		`{{ mood }}{{ tools }}{{ bos_token }}{{ eos_token }}{{ pad_token }}`
	tpl, err := chat.Parse(template, nil)
	if err != nil {
		t.Fatal(err)
	}
	read := func(body string) (string, error) {
		o := formOf(t, body, infer.Sampling{})
		o.model.Template = tpl
		talk := o.conversation()
		if err := o.finish(); err != nil {
			return "", err
		}
		ids, err := o.model.render(talk)
		return o.model.Tokenizer.Decode(ids, false), err
	}
	said, err := read(
		`{"messages":[{"role":"system","content":"a"},{"role":"developer","content":"b"},{"role":"user","content":"c","name":"N"},
		{"role":"assistant","content":"d"},{"role":"tool","content":[{"type":"text","text":"e"}],"tool_call_id":"T"}]}`)
	if want := "[system|a||][system|b||][user|c|N|][assistant|d||][tool|e||T]"; err != nil ||
		!strings.HasPrefix(said, want) {
		t.Errorf("%q, %v", said, err)
	}
	plain := `{"messages":[{"role":"user","content":"x"}],"chat_template_kwargs":`
	for _, v := range []string{`"s"`, "1.5", "true", "null"} {
		if _, err := read(plain + `{"mood":` + v + `}}`); err != nil {
			t.Errorf("%s: %v", v, err)
		}
	}
	for _, name := range []string{"messages", "tools", "add_generation_prompt", "bos_token", "eos_token", "pad_token",
		"absent", ""} {
		if _, err := read(plain + fmt.Sprintf(`{%q:"x"}}`, name)); err == nil ||
			!strings.HasPrefix(err.Error(), "chat_template_kwargs: ") {
			t.Errorf("%q was taken: %v", name, err)
		}
	}
	many := make([]string, 17) // names that the template mentions, as parts of others
	for i, letters := range slices.Collect(slices.Chunk([]byte("abcdefghijklmnopqrstuvwxyz"), 1)) {
		if i < len(many) {
			many[i] = fmt.Sprintf(`%q:1`, letters)
		}
	}
	mentions := strings.Join(many[:16], "")
	if tpl, err = chat.Parse("{# "+strings.ReplaceAll(mentions, `:1`, "")+"q #}x", nil); err != nil {
		t.Fatal(err)
	}
	for n, good := range map[int]bool{16: true, 17: false} {
		if _, err := read(plain + "{" + strings.Join(many[:n], ",") + "}}"); (err == nil) != good {
			t.Errorf("%d variables: %v", n, err)
		}
	}
}

// A chat begins with the model's first token only if it is asked for.
func TestFirstTokenOfChats(t *testing.T) {
	tpl, err := chat.Parse("{{ messages[0].content }}", nil)
	if err != nil {
		t.Fatal(err)
	}
	m := &Model{Context: 128, Tokenizer: tokenizer.Bytes(), Template: tpl, first: 258}
	for special, want := range map[bool][]int32{false: {'h'}, true: {258, 'h'}} {
		talk := conversation{special: special}
		talk.Messages = []message{{Role: "user", Content: "h"}}
		if ids, err := m.render(talk); err != nil || !slices.Equal(ids, want) {
			t.Errorf("special %v: %v, %v; want %v", special, ids, err, want)
		}
	}
}

// Compiled schemas are found again however they are spaced, the one used last stays longest, and together they are
// bounded in bytes, though a single one may be larger.
func TestGrammarsKept(t *testing.T) {
	m := &Model{Tokenizer: tokenizer.Bytes()}
	get := func(schema string) *grammar.Grammar {
		t.Helper()
		g, v, err := m.grammars.get(m, []byte(schema), grammar.Limits{Depth: 32, Time: time.Minute})
		if err != nil || v == nil {
			t.Fatal(err)
		}
		return g
	}
	first := get(`{"const": "0"}`)
	for i := 1; i < maxGrammars; i++ {
		get(fmt.Sprintf(`{"const":"%d"}`, i))
	}
	if get(` {"const" :"0" }`) != first {
		t.Error("the same schema is compiled again")
	}
	get(`{"const":"new"}`)
	var keys []string
	for _, c := range m.grammars.list {
		keys = append(keys, c.schema)
	}
	if len(keys) != maxGrammars || keys[0] != `{"const":"new"}` || keys[1] != `{"const":"0"}` ||
		slices.Contains(keys, `{"const":"1"}`) || !slices.Contains(keys, `{"const":"2"}`) {
		t.Errorf("kept %q", keys)
	}
	half := strings.Repeat("x", maxGrammarBytes/2+1)
	c := grammars{list: []compiled{{half, first}, {half, first}, {"z", first}}}
	if c.trim(); len(c.list) != 1 {
		t.Errorf("%d schemas of half the room and more", len(c.list))
	}
	c.list = []compiled{{half + half, first}, {"z", first}}
	if c.trim(); len(c.list) != 1 || len(c.list[0].schema) != len(half+half) {
		t.Error("a schema larger than the room is dropped at once")
	}
	c.list = []compiled{{half, first}, {"z", first}}
	if c.trim(); len(c.list) != 2 {
		t.Error("what fits is dropped")
	}
	if _, _, err := m.grammars.get(m, []byte(`{"const":"slow"}`), grammar.Limits{Depth: 32, Time: 1}); err == nil {
		t.Error("a schema may be compiled for as long as it takes")
	}
}

// Each of several choices follows the schema by itself.
func TestChoicesFollowTheSchema(t *testing.T) {
	r := newRig(t, setup{context: 512})
	schema := fieldsOf{"type": "array", "items": fieldsOf{"enum": []string{"ab", "cd"}}, "minItems": 2, "maxItems": 3}
	var reply completionReply
	r.post("/v1/completions", fieldsOf{"prompt": "x", "n": 3, "max_tokens": 200, "seed": 5, "response_format": fieldsOf{
		"type": "json_schema", "json_schema": fieldsOf{"schema": schema}}}, &reply)
	for i, c := range reply.Choices {
		var list []string
		if err := json.Unmarshal([]byte(c.Text), &list); err != nil || len(list) < 2 || len(list) > 3 ||
			*c.Reason != "stop" {
			t.Errorf("choice %d: %q, %v", i, c.Text, err)
		}
	}
}

// Runs are listed in order of their names, only so many, and with the newest five samples.
func TestRunsInOrder(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"z", "a/b", "m", "a/a/a"} {
		writeRows(t, filepath.Join(dir, name), 1, 1)
	}
	var lines string
	for step := 0; step < 8; step++ { // step 0 is not one
		lines += fmt.Sprintf(`{"step":%d,"prompt":"p%d","text":"t"}`+"\n", step, step)
	}
	if err := os.WriteFile(filepath.Join(dir, "m", samplesFile), []byte(lines), 0o644); err != nil {
		t.Fatal(err)
	}
	r := runsRig(t, dir)
	const want = `{"data":[{"id":"a/a/a","object":"run"},{"id":"a/b","object":"run"},{"id":"m","object":"run"},{"id":"z","object":"run"}],` +
		`"more":false,"object":"list"}` + "\n"
	if _, _, b := r.do("GET", "/v1/runs", nil); string(b) != want {
		t.Errorf("%s", b)
	}
	var v struct {
		Object, ID string
		Samples    []runSample
	}
	_, _, b := r.do("GET", "/v1/runs/m", nil)
	if err := json.Unmarshal(b, &v); err != nil || v.Object != "run" || v.ID != "m" || len(v.Samples) != 5 ||
		v.Samples[0] != (runSample{7, "p7", "t"}) || v.Samples[4].Step != 3 {
		t.Errorf("%s", b)
	}
	if err := os.WriteFile(filepath.Join(dir, "z", samplesFile),
		[]byte(`{"step":-1,"text":"a"}`+"\n"+`{"text":"b"}`+"\n"+`{"step":2,"text":"c"}`+"\n"+`{"step":0,"text":"d"}`),
		0o644); err != nil {
		t.Fatal(err)
	}
	_, _, b = r.do("GET", "/v1/runs/z", nil) // steps are counted from 1
	if err := json.Unmarshal(b, &v); err != nil || len(v.Samples) != 1 || v.Samples[0].Step != 2 {
		t.Errorf("%s", b)
	}
	for _, bad := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} { // none of them is JSON
		row := record.Row{Step: 1, Loss: 1, LossEMA: bad, Valid: bad, GradNorm: bad, LR: bad, TokS: bad, Time: bad,
			Lambda: []float64{0.5, bad}}
		b, err := json.Marshal(rowFields(&row))
		if want := `{"loss":1,"step":1,"total_steps":0}`; err != nil || string(b) != want {
			t.Errorf("%g: %s, %v, want %s", bad, b, err, want)
		}
	}
	for n, more := range map[int]bool{maxRuns: true, maxRuns - 4: false, maxRuns - 1: true} {
		l := runList{root: r.cfg.Runs, most: maxLooks, names: make([]string, n)}
		if l.find(runDepth); l.more != more || len(l.names) != maxRuns {
			t.Errorf("after %d runs: %d, more %v", n, len(l.names), l.more)
		}
	}
	for depth, n := range map[int]int{1: 2, 2: 3, 3: 4, 0: 0} {
		l := runList{root: r.cfg.Runs, most: maxLooks}
		if l.find(depth); len(l.names) != n {
			t.Errorf("%d levels: %q", depth, l.names)
		}
	}
}
