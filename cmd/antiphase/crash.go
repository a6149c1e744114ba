package main

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"

	"antiphase/internal/fault"
	"antiphase/tensor"
)

// crashed ends the program after a panic in any goroutine: with one line if the user can do something about it,
// otherwise with a report that can be pasted into an issue.
func crashed(a *app, args []string) func(value any, stack []byte) {
	return func(value any, stack []byte) {
		if err := cause(value); err != nil {
			os.Exit(a.fail(err))
		}
		printReport(a, args, value, stack)
		os.Exit(exitFault)
	}
}

// cause is the error behind a panic, nil for an internal error.
func cause(value any) error {
	var m *tensor.NoMemory
	if err, ok := value.(error); ok && errors.As(err, &m) {
		return err
	}
	if fault.Mapped(value) {
		return badInput{fmt.Errorf("a file in use was cut short, or its disk failed, while it was read (%v)", value)}
	}
	return nil
}

// printReport prints an error report: what happened, where, in which version, on which machine, and how it was called.
func printReport(a *app, args []string, value any, stack []byte) {
	quoted := make([]string, len(args))
	for i, s := range args {
		if quoted[i] = s; s == "" || strings.ContainsAny(s, " \t\n\"'\\$*?[]{}<>|&;()") {
			quoted[i] = strconv.Quote(s)
		}
	}
	fmt.Fprintf(a.err, `%s%v
This is a fault of antiphase. Nothing that was saved is lost. Please report it with the lines below.
--- report
version %s
machine %s/%s, %d CPUs, %s
command antiphase %s
fault   %v
%s--- end
`, a.paint(red, "internal fault: "), value, version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU(),
		runtime.Version(), strings.Join(quoted, " "), value, stack)
}
