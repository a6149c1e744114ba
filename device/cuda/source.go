package cuda

import (
	"embed"
	"fmt"
	"strings"

	"antiphase/internal/cu"
)

// The kernels are data of the program: text that the GPU's own compiler turns into machine code at first use.
//
//go:embed kernels/*.cu kernels/*.cuh
var sources embed.FS

// kernel identifies one kernel of the registry.
type kernel int

// kernelRef locates a kernel: kernels/unit.cu compiled with options.
type kernelRef struct {
	unit, name, options string
	early               bool // it waits for earlier work itself, see kernels/early.cuh
	hopper              bool // it has instructions of sm_90a only
}

// registry lists every kernel that a launcher uses, so that a test can build them all.
var registry []kernelRef

// kernelOf registers a kernel: unit is the stem of its .cu, options (such as "-DHEAD=64") are part of the unit's
// identity.
func kernelOf(unit, name string, options ...string) kernel {
	registry = append(registry, kernelRef{unit: unit, name: name, options: strings.Join(options, " ")})
	return kernel(len(registry) - 1)
}

// earlyOf registers a kernel that begins with beginNext and waitEarlier, so that it may start while the one before it
// ends.
func earlyOf(unit, name string, options ...string) kernel {
	k := kernelOf(unit, name, options...)
	registry[k].early = true
	return k
}

// hopperOf registers a kernel for Hopper only.
func hopperOf(unit, name string, options ...string) kernel {
	k := kernelOf(unit, name, options...)
	registry[k].hopper = true
	return k
}

// source is the complete text of a unit: the prelude, then the .cu with each #include "x.cuh" replaced by the file,
// once. Files in replace override those of the same name.
func source(unit, options string, replace map[string]string) (cu.Source, error) {
	var text strings.Builder
	seen := map[string]bool{}
	for _, file := range []string{"prelude.cuh", unit + ".cu"} {
		if err := expand(&text, file, seen, replace); err != nil {
			return cu.Source{}, err
		}
	}
	name := unit
	if options != "" {
		name += " " + options
	}
	return cu.Source{Name: name, Text: text.String(), Options: strings.Fields(options)}, nil
}

func expand(text *strings.Builder, file string, seen map[string]bool, replace map[string]string) error {
	if seen[file] {
		return nil
	}
	seen[file] = true
	content, ok := replace[file]
	if !ok {
		b, err := sources.ReadFile("kernels/" + file)
		if err != nil {
			return fmt.Errorf("cuda: kernel source %s: %w", file, err)
		}
		content = string(b)
	}
	fmt.Fprintf(text, "#line 1 \"%s\"\n", file)
	n := 0
	for line := range strings.Lines(content) {
		n++
		if rest, ok := strings.CutPrefix(strings.TrimSpace(line), `#include "`); ok {
			if err := expand(text, strings.TrimSuffix(rest, `"`), seen, replace); err != nil {
				return err
			}
			fmt.Fprintf(text, "#line %d \"%s\"\n", n+1, file)
			continue
		}
		text.WriteString(line)
	}
	text.WriteByte('\n')
	return nil
}
