package main

import (
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

// Every limit of serve refuses values out of range by the name of its flag, before a model is loaded.
func TestServeLimits(t *testing.T) {
	serve, _, err := (&app{}).command(nil).Find([]string{"serve"})
	if err != nil {
		t.Fatal(err)
	}
	checked := 0
	serve.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) {
		values := map[string][]string{"int": {"-1", "0"}, "int64": {"-1", "0"},
			"duration": {"-1s", "0s"}}[f.Value.Type()]
		if values == nil {
			return
		}
		checked++
		if f.DefValue == values[1] { // zero stands for something
			values = values[:1]
		}
		for _, v := range values {
			code, _, errs := ran(t, "serve", "-m", "none", "--"+f.Name, v)
			if code != exitUsage || !strings.HasPrefix(errs, "error: --"+f.Name+": is "+v+", must ") {
				t.Errorf("--%s %s: exit %d, %s", f.Name, v, code, errs)
			}
		}
	})
	if checked < 25 {
		t.Errorf("%d limits", checked)
	}
}
