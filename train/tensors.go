package train

import (
	"strings"

	"antiphase/checkpoint"
	"antiphase/internal/safetensors"
)

// tensorFiles are a checkpoint's files with tensors of one kind: one, or one per rank.
func tensorFiles(c *checkpoint.Checkpoint, base string) (out []string) {
	for _, e := range c.Manifest.Files {
		if e.Name == base+".safetensors" || strings.HasPrefix(e.Name, base+"-rank-") {
			out = append(out, c.Path(e.Name))
		}
	}
	return out
}

func hasTensors(c *checkpoint.Checkpoint, base string) bool { return len(tensorFiles(c, base)) > 0 }

// openTensors opens them as one file. If the manifest has none, the error names the missing one.
func openTensors(c *checkpoint.Checkpoint, base string) (*safetensors.File, error) {
	files, whole := tensorFiles(c, base), c.Path(base+".safetensors")
	if len(files) == 0 || len(files) == 1 && files[0] == whole {
		return safetensors.OpenFS(c.FS(), whole)
	}
	return safetensors.OpenSliced(c.FS(), files)
}

// IsWeights reports whether a checkpoint's file holds weights.
func IsWeights(name string) bool {
	return name == modelName+".safetensors" || strings.HasPrefix(name, modelName+"-rank-")
}
