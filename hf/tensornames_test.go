package hf

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"antiphase/layer"
	"antiphase/model"
)

// tensorList is a layout's tensors with their shapes, sorted.
func tensorList(l layout) []string {
	shapes := map[string]string{}
	for p := range l.parts() {
		for _, q := range p.pieces {
			shapes[q.name] = fmt.Sprint(q.shape())
		}
	}
	var list []string
	for _, name := range slices.Sorted(maps.Keys(shapes)) {
		list = append(list, name+shapes[name])
	}
	return list
}

// The names and shapes in the files of every class, written out as transformers and the authors spell them.
func TestTensorNames(t *testing.T) {
	const common = `R.embed_tokens.weight[40 24] R.norm.weight[24] R.layers.0.input_layernorm.weight[24] R.layers.0.post_attention_layernorm.weight[24]
		R.layers.0.mlp.gate_proj.weight[20 24] R.layers.0.mlp.up_proj.weight[20 24] R.layers.0.mlp.down_proj.weight[24 20] `
	const head = "lm_head.weight[40 24] "
	const lambdas = "A.lambda_q1[6] A.lambda_k1[6] A.lambda_q2[6] A.lambda_k2[6] "
	const llama = common +
		"A.q_proj.weight[24 24] A.k_proj.weight[12 24] A.v_proj.weight[12 24] A.o_proj.weight[24 24] "
	const biases = "A.q_proj.bias[24] A.k_proj.bias[12] A.v_proj.bias[12] A.o_proj.bias[24] "
	const pairs = common + "A.q_proj.weight[48 24] A.k_proj.weight[24 24] A.v_proj.weight[24 24] "
	tied := func(c *model.Config) { c.TieEmbed, c.Bias = true, true }
	for _, c := range []struct {
		arch   string
		class  Class
		change func(*model.Config)
		root   string // of all but the head
		out    string
		want   string
	}{
		{"transformer", Llama, nothing, "model", "o_proj", llama + head},
		{"transformer", Llama, tied, "model", "o_proj", llama + biases},
		{"transformer", Antiphase, tied, "", "out_proj", strings.ReplaceAll(llama+biases, "o_proj", "out_proj")},
		{"diff", DiffLlama, nothing, "model", "o_proj", pairs + "A.o_proj.weight[24 48] " + lambdas + head},
		{"diff", DiffLlama, tied, "model", "o_proj", pairs +
			"A.o_proj.weight[24 48] A.q_proj.bias[48] A.k_proj.bias[24] A.v_proj.bias[24] A.o_proj.bias[24] " +
			lambdas},
		{"diff", Antiphase, nothing, "", "out_proj", pairs + "A.out_proj.weight[24 48] A.subln.weight[12] " +
			lambdas + head},
		{"diff2", Antiphase, nothing, "model", "o_proj", common + head + "A.q_proj.weight[48 24] A.k_proj.weight[12 " +
			"24] A.v_proj.weight[12 24] A.o_proj.weight[24 24] A.lambda_proj.weight[4 24] "},
	} {
		config := nano(t, c.arch, func(x *model.Config) { x.Layers = 1; c.change(x) })
		l, err := exportLayout(config, c.class)
		if err != nil {
			t.Fatal(err)
		}
		root := ""
		if c.root != "" {
			root = c.root + "."
		}
		l.names = naming{root: root, out: c.out}
		text := strings.NewReplacer("A.", root+"layers.0.self_attn.", "R.", root).Replace(c.want)
		want := strings.Split(strings.ReplaceAll(strings.Join(strings.Fields(text), " "), "] ", "]\n"), "\n")
		slices.Sort(want)
		if got := tensorList(l); !slices.Equal(got, want) {
			t.Errorf("%s as %s:\n%s\nwant\n%s", c.arch, c.class, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
}

// Whichever parameter cannot be read, an export fails with its error and leaves nothing; so does λ.
func TestEveryParameterIsNeeded(t *testing.T) {
	broken := errors.New("broken")
	for _, change := range []func(*model.Config){
		func(c *model.Config) { c.LambdaInit, c.LambdaConst = model.LambdaConstant, 0.1 },
		func(c *model.Config) {
			c.LambdaInit, c.LambdaConst, c.HeadNorm = model.LambdaConstant, 0.8, layer.HeadNormPlain
		},
	} {
		m := trained(t, nano(t, "diff", change))
		for _, p := range m.Params.List {
			values := func(name string) ([]float32, error) {
				if name == p.Name {
					return nil, broken
				}
				return valuesOf(m)(name)
			}
			dir := filepath.Join(t.TempDir(), "x")
			if err := (&Export{Config: m.Config, Values: values}).Write(dir, false); !errors.Is(err, broken) {
				t.Errorf("%s: %v", p.Name, err)
			}
			if left, _ := filepath.Glob(filepath.Join(filepath.Dir(dir), "*")); len(left) > 0 {
				t.Errorf("%s: left %q", p.Name, left)
			}
			list, known, err := Lambdas(m.Config, values)
			if needed := isLambda(p.Name); needed != errors.Is(err, broken) || !known || (list == nil) != needed {
				t.Errorf("%s: λ = %v, known %v, %v", p.Name, list, known, err)
			}
		}
		short := func(name string) ([]float32, error) {
			x, err := valuesOf(m)(name)
			return x[:len(x)-strings.Count(name, "layers.1.attn.lambda_k")], err
		}
		if _, _, err := Lambdas(m.Config, short); err == nil ||
			!strings.Contains(err.Error(),
				`"layers.1.attn.lambda_q1" and "layers.1.attn.lambda_k1" have 6 and 5 values`) {
			t.Error(err)
		}
	}
}
