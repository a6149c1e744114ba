//go:build (amd64 || arm64) && !nogpu

package cu

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/ebitengine/purego"

	"antiphase/internal/handlers"
)

// lib is a loaded shared library.
type lib struct {
	name   string
	handle uintptr
}

// openLib tries names in order, each with the loader's own search first and then in the folders of toolkits and Python
// environments. The error names everything that was tried.
func openLib(names ...string) (*lib, error) {
	defer handlers.Keep()()
	var tried []string
	for _, name := range names {
		candidates := append(append(overrides(name), name), installed(name)...)
		for _, path := range candidates {
			h, err := purego.Dlopen(path, purego.RTLD_NOW|purego.RTLD_GLOBAL)
			if err == nil {
				return &lib{path, h}, nil
			}
			if path != name { // if a file exists but does not load, report why
				tried = append(tried, err.Error())
			}
		}
		tried = append(tried, name)
	}
	return nil, errors.New("tried " + strings.Join(tried, ", "))
}

// overrides are the paths in ANTIPHASE_CUDA_PATH, a list of folders.
func overrides(name string) (out []string) {
	for _, dir := range filepath.SplitList(os.Getenv("ANTIPHASE_CUDA_PATH")) {
		for _, sub := range []string{"", "lib64", "lib"} {
			if path := filepath.Join(dir, sub, name); exists(path) {
				out = append(out, path)
			}
		}
	}
	return out
}

// installed lists where toolkits and pip put libraries that the loader does not search.
func installed(name string) (out []string) {
	patterns := []string{
		"/usr/local/cuda*/lib64/" + name,
		"/usr/local/cuda*/targets/*/lib/" + name,
		"/opt/cuda*/lib64/" + name,
		"/usr/local/nvidia/lib64/" + name, // the driver, in containers
		"/usr/lib/wsl/lib/" + name,
	}
	var roots []string
	for _, env := range []string{"VIRTUAL_ENV", "CONDA_PREFIX"} {
		if dir := os.Getenv(env); dir != "" {
			roots = append(roots, dir)
		}
	}
	roots = append(roots, "/usr", "/usr/local", "/opt/*/.venv", "/opt/*/venv", "/opt/venv", "/opt/*")
	for _, root := range roots {
		for _, site := range []string{"lib/python3*/site-packages", "lib/python3*/dist-packages",
			"lib/python3/dist-packages"} {
			patterns = append(patterns, filepath.Join(root, site, "nvidia", "*", "lib", name))
		}
	}
	for _, p := range patterns {
		found, _ := filepath.Glob(p) // only a malformed pattern is an error
		out = append(out, found...)
	}
	return out
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// symbols fills a table of entry points.
func (l *lib) symbols(table map[string]*uintptr) error {
	for name, at := range table {
		p, err := purego.Dlsym(l.handle, name)
		if err != nil {
			return fmt.Errorf("%s has no %s", l.name, name)
		}
		*at = p
	}
	return nil
}

// preload loads libraries that l will look for by bare name, from l's own folder, where the loader may not look.
func preload(l *lib, pattern string) {
	if !strings.Contains(l.name, "/") {
		return
	}
	found, _ := filepath.Glob(filepath.Join(filepath.Dir(l.name), pattern)) // only a malformed pattern is an error
	for _, path := range found {
		_, _ = purego.Dlopen(path, purego.RTLD_NOW|purego.RTLD_GLOBAL) // if it is needed, l will report it
	}
}
