package pair

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math"

	"antiphase/internal/safetensors"
	"antiphase/layer"
	"antiphase/model"
	"antiphase/tokenizer"
)

// Keys of the metadata.
const (
	formatKey    = "antiphase.packed"
	configKey    = "config"
	tokenizerKey = "tokenizer"
	aboutKey     = "about"
	format       = "1"
)

// scaleEnding marks the scales of a matrix's rows.
const scaleEnding = ".scale"

// Model is a packed model. Values gives a parameter in the model's own layout.
type Model struct {
	Config    model.Config
	Tokenizer *tokenizer.Tokenizer
	About     string // how it was made
	Hash      string // of the file
	Bytes     int64
	Values    func(name string) ([]float32, error)
}

// packed reports whether a parameter is stored in int8: matrices are, vectors and λ stay float32.
func packed(p *layer.Param) bool { return p.Rows > 1 && p.Cols >= 16 }

// Write stores a model. Rows of matrices become int8 with the scale max|w|/127: the error of each weight is at most 0.4
// % of the row's largest.
func Write(w io.Writer, m *Model) error {
	config, err := json.Marshal(m.Config)
	if err != nil {
		return err
	}
	tok, err := m.Tokenizer.MarshalJSON()
	if err != nil {
		return err
	}
	var list []safetensors.Entry
	for _, p := range model.Table(m.Config).List {
		x, err := m.Values(p.Name)
		if err != nil {
			return err
		}
		if len(x) != p.Rows*p.Cols {
			return fmt.Errorf("pair: %s has %d values, the configuration wants %d × %d", p.Name, len(x), p.Rows, p.Cols)
		}
		if !packed(p) {
			list = append(list, safetensors.FromFloat32s(p.Name, safetensors.F32, []int{p.Rows, p.Cols}, x))
			continue
		}
		q, scales := quantize(x, p.Rows, p.Cols)
		list = append(list, safetensors.FromBytes(p.Name, safetensors.I8, []int{p.Rows, p.Cols}, q),
			safetensors.FromFloat32s(p.Name+scaleEnding, safetensors.F32, []int{p.Rows}, scales))
	}
	return safetensors.Write(w, list, map[string]string{formatKey: format, configKey: string(config),
		tokenizerKey: string(tok), aboutKey: m.About})
}

// quantize rounds every row to int8.
func quantize(x []float32, rows, cols int) (q []byte, scales []float32) {
	q, scales = make([]byte, len(x)), make([]float32, rows)
	for r := range rows {
		row, most := x[r*cols:(r+1)*cols], float32(0)
		for _, v := range row {
			most = max(most, float32(math.Abs(float64(v))))
		}
		if scales[r] = most / 127; most == 0 {
			continue
		}
		for i, v := range row {
			q[r*cols+i] = byte(int8(math.Round(float64(v / scales[r]))))
		}
	}
	return q, scales
}

// IsPacked reports whether a file looks like a packed model, to choose a reader; Parse checks.
func IsPacked(f *safetensors.File) bool { return f.Metadata()[formatKey] != "" }

// Parse reads a packed model. The bytes are used until the last call of Values.
func Parse(b []byte) (*Model, error) {
	f, err := safetensors.Parse(b)
	if err != nil {
		return nil, fmt.Errorf("pair: %w", err)
	}
	meta := f.Metadata()
	if meta[formatKey] != format {
		return nil, fmt.Errorf("pair: not a packed model of format %s (it says %q)", format, meta[formatKey])
	}
	m := &Model{About: meta[aboutKey], Hash: Hash(b), Bytes: int64(len(b))}
	if err := json.Unmarshal([]byte(meta[configKey]), &m.Config); err != nil {
		return nil, fmt.Errorf("pair: config: %w", err)
	}
	if err := m.Config.Check(); err != nil {
		return nil, fmt.Errorf("pair: config: %w", err)
	}
	if m.Tokenizer, err = tokenizer.Parse([]byte(meta[tokenizerKey])); err != nil {
		return nil, fmt.Errorf("pair: tokenizer: %w", err)
	}
	if m.Tokenizer.Vocab() > m.Config.Vocab {
		return nil, fmt.Errorf("pair: the tokenizer has %d ids, the model %d", m.Tokenizer.Vocab(), m.Config.Vocab)
	}
	table := map[string]*layer.Param{}
	for _, p := range model.Table(m.Config).List {
		table[p.Name] = p
		if info, ok := f.Info(p.Name); !ok || len(info.Shape) != 2 || info.Shape[0] != p.Rows ||
			info.Shape[1] != p.Cols {
			return nil, fmt.Errorf("pair: parameter %q is missing or is not %d × %d", p.Name, p.Rows, p.Cols)
		}
	}
	m.Values = func(name string) ([]float32, error) {
		p := table[name]
		if p == nil {
			return nil, fmt.Errorf("pair: there is no parameter %q", name)
		}
		return values(f, p)
	}
	return m, nil
}

// values widens a parameter.
func values(f *safetensors.File, p *layer.Param) ([]float32, error) {
	info, _ := f.Info(p.Name) // Parse has seen it
	if info.DType != safetensors.I8 {
		return f.Float32s(p.Name)
	}
	b, err := f.Bytes(p.Name)
	if err != nil {
		return nil, err
	}
	raw, err := f.Bytes(p.Name + scaleEnding)
	if err != nil || len(raw) != 4*p.Rows {
		return nil, fmt.Errorf("pair: the scales of %q are missing or are not %d numbers", p.Name, p.Rows)
	}
	out := make([]float32, len(b))
	for i, v := range b {
		scale := math.Float32frombits(binary.LittleEndian.Uint32(raw[4*(i/p.Cols):]))
		out[i] = float32(int8(v)) * scale
	}
	return out, nil
}
