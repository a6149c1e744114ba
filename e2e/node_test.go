package e2e

import (
	"os"
	"os/exec"
	"testing"
)

// TestNode runs openai.mjs against the same server. It needs node and the package in node_modules; .ci/run e2e installs
// it.
func TestNode(t *testing.T) {
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("there is no node")
	}
	if _, err := os.Stat("node_modules/openai"); err != nil {
		t.Skip("npm's openai is not installed: run npm install in e2e")
	}
	c := exec.Command(node, "openai.mjs")
	c.Env = append(os.Environ(), "ANTIPHASE_API_KEY="+key)
	out, err := c.CombinedOutput()
	t.Logf("%s", out)
	if err != nil {
		t.Error(err)
	}
}
