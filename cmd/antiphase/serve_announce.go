package main

import (
	"fmt"
	"net"

	"antiphase/experiment"
	"antiphase/server"
)

// announce prints the address and a command to paste on this machine; fileKeys is the file of keys, "" if the keys are
// the environment's.
func (a *app) announce(addr string, models []*server.Model, keyed bool, fileKeys string) {
	m := models[0]
	auth := ""
	switch {
	case keyed && fileKeys != "":
		auth = fmt.Sprintf(` -H "Authorization: Bearer $(grep -m 1 '^[^#]' %s)"`, experiment.ShellWord(fileKeys))
	case keyed:
		auth = ` -H "Authorization: Bearer ${ANTIPHASE_API_KEY%%,*}"`
	}
	if host, port, err := net.SplitHostPort(addr); err == nil {
		// All addresses of the machine: none to connect to.
		if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
			addr = net.JoinHostPort("127.0.0.1", port)
		}
	}
	a.note("serving on http://%s", addr)
	if m.Template != nil {
		a.note(`  curl http://%s/v1/chat/completions%s -H 'Content-Type: application/json' -d '{"model":"%s","messages":[{"role":"user","content":"Hello"}]}'`,
			addr, auth, m.ID)
		return
	}
	a.note(`  curl http://%s/v1/completions%s -H 'Content-Type: application/json' -d '{"model":"%s","prompt":"Once upon a time","max_tokens":32}'`,
		addr, auth, m.ID)
}
