//go:build !unix && !windows

package flock

import "os"

// tryLock takes no lock: WebAssembly has none, and its host decides who else opens the folder.
func tryLock(*os.File) (bool, error) { return true, nil }

// lockDir does nothing.
func lockDir(string) (*os.File, bool, error) { return nil, true, nil }
