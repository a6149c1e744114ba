package hf

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"

	"antiphase/internal/safetensors"
	"antiphase/internal/vfs"
	"antiphase/model"
)

// Class is the transformers class that a folder is written for.
type Class string

// Auto selects Llama or DiffLlama if they compute the same function, otherwise Antiphase, whose Python code is in the
// folder and needs trust_remote_code: DIFF V2, and ablations such as no head norm.
const (
	Auto      Class = "auto"
	Llama     Class = "llama"
	DiffLlama Class = "diffllama"
	Antiphase Class = "antiphase"
)

// Classes lists the classes of an export.
func Classes() []Class { return []Class{Auto, Llama, DiffLlama, Antiphase} }

// dtypes are the types in which weights can be stored, by their names in config.json.
var dtypes = map[string]safetensors.DType{"float32": safetensors.F32, "bfloat16": safetensors.BF16,
	"float16": safetensors.F16}

// DTypes lists the types in which weights can be stored.
func DTypes() []string { return slices.Sorted(maps.Keys(dtypes)) }

// ShardBytes is the size above which weights are split into several files, as in transformers.
const ShardBytes = 5e9

// Values returns a parameter of the table by its name, in float32. The caller owns the result.
type Values func(name string) ([]float32, error)

// Export is a folder to be written.
type Export struct {
	Config     model.Config
	Values     Values
	Class      Class  // Auto when empty
	DType      string // float32 (default), bfloat16 or float16; λ stays float32
	ShardBytes int64  // maximum bytes of tensors in a file; ShardBytes if 0
	Tokens     Tokens
	Generation *Generation
	Files      map[string][]byte // further files of the folder: tokenizer, chat template, card
	FS         vfs.FS            // file system to write to; nil: the machine's
}

// Tokens are special ids; −1 and an empty list mean none.
type Tokens struct {
	BOS, Pad int
	EOS      []int
}

// Resolve returns the class that the folder will be written for, or why it cannot be the requested one.
func (e *Export) Resolve() (Class, error) {
	if err := e.Config.Check(); err != nil {
		return "", err
	}
	if why := noClass(e.Config); why != "" {
		return "", fmt.Errorf("%s, which no transformers class computes: keep the run folder", why)
	}
	native, why := nativeClass(e.Config)
	switch want := cmp.Or(e.Class, Auto); want {
	case Auto:
		if native == "" {
			return Antiphase, nil
		}
		return native, nil
	case Antiphase, native:
		return want, nil
	case Llama, DiffLlama:
		if native != "" {
			why = fmt.Sprintf("the model is a %s", native)
		}
		return "", fmt.Errorf("class %q cannot hold this model: %s; class %q can", want, why, Antiphase)
	default:
		return "", fmt.Errorf("class %q is unknown; there are %v", want, Classes())
	}
}

// Write creates the folder dir, completely or not at all. An existing folder is an error unless replace is set.
func (e *Export) Write(dir string, replace bool) error {
	files, err := e.files()
	if err == nil {
		err = publish(vfs.Or(e.FS), dir, files, replace)
	}
	if err != nil {
		return fmt.Errorf("model folder %s: %w", dir, err)
	}
	return nil
}

// file is one file of a folder; write streams its contents.
type file struct {
	name  string
	write func(w io.Writer) error
}

// files lists all files of the folder.
func (e *Export) files() ([]file, error) {
	class, err := e.Resolve()
	if err != nil {
		return nil, err
	}
	dtype, ok := dtypes[cmp.Or(e.DType, "float32")]
	if !ok {
		return nil, fmt.Errorf("dtype %q is unknown; there are %v", e.DType, DTypes())
	}
	targets, err := e.targets(class)
	if err != nil {
		return nil, err
	}
	config, err := e.configJSON(class)
	if err != nil {
		return nil, err
	}
	list := []file{{"config.json", config}}
	if class == Antiphase {
		list = append(list, remoteCode()...)
	}
	if e.Generation != nil {
		b, err := e.Generation.JSON(e.Tokens)
		if err != nil {
			return nil, err
		}
		list = append(list, file{"generation_config.json", contents(b)})
	}
	for name, b := range e.Files {
		list = append(list, file{name, contents(b)})
	}
	weights, err := e.shards(targets, dtype)
	return append(list, weights...), err
}

func contents(b []byte) func(io.Writer) error {
	return func(w io.Writer) error { _, err := w.Write(b); return err }
}
