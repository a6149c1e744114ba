package main

import (
	"fmt"
	"net/url"
)

// checkURL rejects what cannot be the address of a server: another scheme, no host, characters that no URL has.
func checkURL(s string) error {
	u, err := url.Parse(s)
	switch {
	case err != nil:
		return fmt.Errorf("%w; want http://HOST:PORT or https://HOST", err)
	case u.Scheme != "http" && u.Scheme != "https", u.Hostname() == "":
		return fmt.Errorf("is %q, must be http://HOST:PORT or https://HOST", s)
	}
	return nil
}
