package checkpoint_test

import (
	"errors"
	"fmt"
	"io"
	"os"

	"antiphase/checkpoint"
)

// A training loop saves its state every so often; the same program, started again, finds the newest whole one.
func Example() {
	dir, err := os.MkdirTemp("", "run")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)

	store, err := checkpoint.Open(dir, checkpoint.Options{KeepLast: 2})
	if err != nil {
		panic(err)
	}
	if _, err := store.Latest(nil); errors.Is(err, checkpoint.ErrNone) {
		fmt.Println("starting afresh")
	}
	for step := int64(10); step <= 30; step += 10 {
		files := []checkpoint.File{{
			Name:  "state.json",
			Write: func(w io.Writer) error { _, err := fmt.Fprintf(w, `{"step":%d}`, step); return err },
		}}
		if err := store.Save(step, files); err != nil {
			panic(err) // a trainer would continue after checkpoint.ErrNoSpace
		}
	}
	// Someone's editor cuts a file of the newest one.
	if err := os.Truncate(dir+"/checkpoints/step-00000030/state.json", 5); err != nil {
		panic(err)
	}
	c, err := store.Latest(func(string) { fmt.Println("walked past a damaged one") })
	if err != nil {
		panic(err)
	}
	b, err := os.ReadFile(c.Path("state.json"))
	fmt.Printf("resuming from step %d: %s %v\n", c.Step, b, err)
	// Output:
	// starting afresh
	// walked past a damaged one
	// resuming from step 20: {"step":20} <nil>
}
