package browser

import (
	"fmt"
	"os"
	"os/exec"
	"testing"
)

// Path returns a Chromium, and skips the test if there is none to use.
func Path(t testing.TB) string {
	t.Helper()
	if testing.Short() {
		t.Skip("a browser is not started with -short")
	}
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	Lack(t, "no chromium is installed (Debian: chromium)")
	return ""
}

// required is set where a browser is known to be installed, as in CI: a test that cannot use it then fails.
const required = "ANTIPHASE_REQUIRE_BROWSER"

// Lack ends a test that cannot use the browser: it skips, with the reason, or fails where one is required.
func Lack(t testing.TB, format string, args ...any) {
	t.Helper()
	reason := fmt.Sprintf(format, args...)
	if os.Getenv(required) != "" {
		t.Fatalf("%s is set, but %s", required, reason)
	}
	t.Skip(reason)
}
