//go:build (amd64 || arm64) && !nogpu

package cu

import (
	"fmt"
	"runtime"
	"strings"
	"unsafe"

	"antiphase/internal/handlers"
)

// nvrtc is CUDA's run-time compiler.
type nvrtc struct {
	api     nvrtcAPI
	version int
	note    func(string) // called for warnings about slow kernels
}

type nvrtcAPI struct {
	version, create, compile, destroy, logSize, log, cubinSize, cubin uintptr
}

func openNVRTC() (*nvrtc, error) {
	l, err := openLib("libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so")
	if err != nil {
		return nil, err
	}
	preload(l, "libnvrtc-builtins.so*")
	r := &nvrtc{}
	a := &r.api
	err = l.symbols(map[string]*uintptr{
		"nvrtcVersion": &a.version, "nvrtcCreateProgram": &a.create, "nvrtcCompileProgram": &a.compile,
		"nvrtcDestroyProgram":    &a.destroy,
		"nvrtcGetProgramLogSize": &a.logSize, "nvrtcGetProgramLog": &a.log, "nvrtcGetCUBINSize": &a.cubinSize,
		"nvrtcGetCUBIN": &a.cubin,
	})
	if err != nil {
		return nil, err
	}
	var major, minor int32
	if code := call(a.version, uintptr(unsafe.Pointer(&major)), uintptr(unsafe.Pointer(&minor))); code != 0 {
		return nil, fmt.Errorf("nvrtcVersion: code %d", code)
	}
	r.version = int(major)*1000 + int(minor)*10
	return r, nil
}

// compile turns a unit into a cubin for arch. The error contains the compiler's messages.
func (r *nvrtc) compile(s Source, arch string) ([]byte, error) {
	defer handlers.Keep()()
	text, name := zeroEnded(s.Text), zeroEnded(s.Name+".cu")
	var prog uintptr
	if code := call(r.api.create, uintptr(unsafe.Pointer(&prog)), uintptr(unsafe.Pointer(text)),
		uintptr(unsafe.Pointer(name)), 0, 0, 0); code != 0 {
		return nil, fmt.Errorf("kernel %s: nvrtcCreateProgram: code %d", s.Name, code)
	}
	defer func() { _ = call(r.api.destroy, uintptr(unsafe.Pointer(&prog))) }()
	options := append([]string{"--gpu-architecture=" + arch, "--std=c++17", "-default-device", "--generate-line-info"},
		s.Options...)
	argv := make([]*byte, len(options))
	for i, o := range options {
		argv[i] = zeroEnded(o)
	}
	code := call(r.api.compile, prog, uintptr(len(argv)), uintptr(unsafe.Pointer(&argv[0])))
	runtime.KeepAlive(argv)
	if code != 0 {
		return nil, fmt.Errorf("kernel %s for %s does not compile (code %d):\n%s", s.Name, arch, code, r.messages(prog))
	}
	var size uintptr
	if code := call(r.api.cubinSize, prog, uintptr(unsafe.Pointer(&size))); code != 0 || size == 0 {
		return nil, fmt.Errorf("kernel %s for %s: no machine code (code %d)", s.Name, arch, code)
	}
	cubin := make([]byte, size)
	if code := call(r.api.cubin, prog, uintptr(unsafe.Pointer(&cubin[0]))); code != 0 {
		return nil, fmt.Errorf("kernel %s: nvrtcGetCUBIN: code %d", s.Name, code)
	}
	for line := range strings.Lines(r.messages(prog)) { // serialised products, registers that are not redistributed
		if strings.Contains(line, "(C75") {
			r.note(fmt.Sprintf("kernel %s: %s", s.Name, strings.TrimSpace(line)))
		}
	}
	return cubin, nil
}

// messages is the compiler's log.
func (r *nvrtc) messages(prog uintptr) string {
	var size uintptr
	if call(r.api.logSize, prog, uintptr(unsafe.Pointer(&size))) != 0 || size < 2 {
		return ""
	}
	b := make([]byte, size)
	if call(r.api.log, prog, uintptr(unsafe.Pointer(&b[0]))) != 0 {
		return ""
	}
	return strings.TrimSpace(cString(b))
}
