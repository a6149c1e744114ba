package task

import (
	"context"
	"fmt"
	"math"
	"slices"

	"antiphase/eval"
	"antiphase/layer"
	"antiphase/model"
)

// Gradient flow (the paper's Appendix G argues that the gradients of DIFF and of the Transformer differ only by
// constants): norms by kind of parameter and layer, of the mean loss of held-out texts. Training writes the same groups
// to metrics.jsonl.
func init() {
	register(55, eval.Task{
		Name: "gradients", Version: 1, Shots: -1, Inside: true,
		Doc:      "gradient norms by kind of parameter and layer over held-out text",
		Measures: []eval.Measure{{Name: "norm", Label: "gradient norm"}},
		Settings: append(textSettings(0),
			eval.Setting{Key: "samples", Default: 8, Rule: eval.AtLeast(1),
				Doc: "sequences, each with its own gradient"}),
		Valid:   validLength,
		Prepare: prepareGradients,
	})
}

// GradientsDetail is the data of the figure of the task gradients: means over sequences.
type GradientsDetail struct {
	All    []GroupNorm   `json:"all"`
	Layers [][]GroupNorm `json:"layers"`
}

// GroupNorm is the norm of the gradients of one kind of parameter, and the norm per parameter: norm/√count.
type GroupNorm struct {
	Name string  `json:"name"`
	Norm float64 `json:"norm"`
	RMS  float64 `json:"rms"`
}

func prepareGradients(ctx context.Context, p *eval.Plan) (*eval.Job, error) {
	texts, length, source, err := sequences(ctx, p, p.Limited(p.Int("samples")))
	if err != nil {
		return nil, err
	}
	j := eval.NewJob(texts, len(texts))
	j.Config["source"] = source
	j.Ask = func(ctx context.Context, lm eval.LM, which []int) ([]eval.Answer, error) {
		s := lm.(*eval.Subject)
		twin, err := trainable(s)
		if err != nil {
			return nil, err
		}
		defer twin.Free()
		var out []eval.Answer
		for _, w := range which {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			d, err := gradientsOf(twin, read(s, texts[w], length))
			if err != nil {
				return nil, err
			}
			sum := 0.0
			for _, g := range d.All {
				sum += g.Norm * g.Norm
			}
			a := eval.Answer{Values: map[string]float64{"norm": math.Sqrt(sum)}, Doc: map[string]any{"text": texts[w]}}
			if err := a.SetDetail(d); err != nil {
				return nil, err
			}
			out = append(out, a)
		}
		return out, nil
	}
	j.Finish = finishGradients
	return j, nil
}

// trainable is a copy of the model with gradients. The model's cache is freed for it.
func trainable(s *eval.Subject) (*model.Model, error) {
	s.Close()
	d := s.Model.Device()
	twin, err := model.New(d, s.Model.Config, layer.Memory{Train: true})
	if err != nil {
		return nil, err
	}
	for i, p := range s.Model.Params.List {
		x := make([]float32, p.Rows*p.Cols)
		p.Read(d, x)
		twin.Params.Set(d, twin.Params.List[i], x)
	}
	return twin, nil
}

// gradientsOf is the gradient of one sequence's mean loss.
func gradientsOf(m *model.Model, b *model.Batch) (d GradientsDetail, err error) {
	b.T--
	b.Targets, b.IDs = slices.Clone(b.IDs[1:]), b.IDs[:b.T]
	if b.T < 1 {
		return d, fmt.Errorf("a text of %d tokens has nothing to predict", b.T+1)
	}
	m.Params.ZeroGrad(m.Device())
	if err := m.Backprop(b, 1/float64(b.T)); err != nil {
		return d, err
	}
	d.All = groupNorms(m, -1)
	for l := range m.Config.Layers {
		d.Layers = append(d.Layers, groupNorms(m, l))
	}
	return d, m.Device().Sync()
}

func groupNorms(m *model.Model, l int) (out []GroupNorm) {
	g := m.NewGradientNorms(m.GradientGroups(l))
	defer g.Free()
	for i, x := range g.Read(nil) {
		out = append(out, GroupNorm{g.Groups[i].Name, x, x / math.Sqrt(float64(g.Groups[i].Count))})
	}
	return out
}

func finishGradients(r *eval.Result) error {
	list, err := eval.Details[GradientsDetail](r.Answers)
	if err != nil {
		return err
	}
	d := list[0]
	sums := map[string]*eval.Ratio{}
	for i, x := range list {
		for k, g := range x.All {
			if sums[g.Name] == nil {
				sums[g.Name] = &eval.Ratio{}
			}
			sums[g.Name].Add(g.Norm, 1)
			if i > 0 {
				d.All[k].Norm, d.All[k].RMS = d.All[k].Norm+g.Norm, d.All[k].RMS+g.RMS
			}
		}
		for l := range x.Layers {
			for k, g := range x.Layers[l] {
				if i > 0 {
					d.Layers[l][k].Norm, d.Layers[l][k].RMS = d.Layers[l][k].Norm+g.Norm, d.Layers[l][k].RMS+g.RMS
				}
			}
		}
	}
	n := float64(len(list))
	for k := range d.All {
		g := &d.All[k]
		g.Norm, g.RMS = g.Norm/n, g.RMS/n
		r.Add("norm_"+g.Name, "gradient norm, "+g.Name, eval.Neither, sums[g.Name].Mean())
	}
	for l := range d.Layers {
		for k := range d.Layers[l] {
			d.Layers[l][k].Norm, d.Layers[l][k].RMS = d.Layers[l][k].Norm/n, d.Layers[l][k].RMS/n
		}
	}
	return r.SetDetail(d)
}
