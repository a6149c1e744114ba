package server

import (
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
)

// hostName is the name in a Host header: without port and brackets, in lower case.
func hostName(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return strings.TrimSuffix(strings.ToLower(strings.Trim(host, "[]")), ".")
}

// originAllowed compares whole origins: scheme, name and port.
func (g *guard) originAllowed(origin, host string) bool {
	if slices.Contains(g.cfg.Origins, origin) {
		return true
	}
	u, err := url.Parse(origin)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Path != "" || u.User != nil || u.RawQuery != "" {
		return false
	}
	return strings.EqualFold(u.Host, host)
}

// checkNames rejects names that no request could match.
func checkNames(hosts, origins []string) error {
	for _, h := range hosts {
		if h != hostName(h) || strings.ContainsAny(h, "/ *") {
			return fmt.Errorf("host %q: must be a name or address in lower case without scheme and port, "+
				"such as app.example", h)
		}
	}
	for _, o := range origins {
		u, err := url.Parse(o)
		if err != nil || u.Host == "" || o != strings.ToLower(u.Scheme+"://"+u.Host) || strings.Contains(o, "*") {
			return fmt.Errorf("origin %q: must be a scheme, a name and a port if it is not the scheme's own, "+
				"such as https://app.example", o)
		}
	}
	return nil
}
