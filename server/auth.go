package server

import (
	"bufio"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// Keys are the valid API keys. Only their hashes are kept.
type Keys struct {
	sums [][sha256.Size]byte
}

// maxKeys bounds the comparisons per request.
const maxKeys = 1024

// maxKeyFile bounds the bytes of a file of keys.
const maxKeyFile = 1 << 20

// NewKeys takes keys; empty ones are skipped. It is nil when there are none.
func NewKeys(list ...string) (*Keys, error) {
	k := &Keys{}
	for _, key := range list {
		if key = strings.TrimSpace(key); key == "" {
			continue
		}
		if len(key) < 8 {
			return nil, fmt.Errorf("server: an API key has %d characters, must have at least 8", len(key))
		}
		if i := strings.IndexFunc(key, func(r rune) bool { return r <= ' ' || r > '~' }); i >= 0 {
			return nil, fmt.Errorf(
				"server: API key %d has %q, which clients cannot send in a header; use letters, digits and the like",
				len(k.sums)+1, key[i:i+1])
		}
		if len(k.sums) == maxKeys {
			return nil, fmt.Errorf("server: more than %d API keys", maxKeys)
		}
		k.sums = append(k.sums, sha256.Sum256([]byte(key)))
	}
	if len(k.sums) == 0 {
		return nil, nil
	}
	return k, nil
}

// ReadKeys reads one key per line; lines that begin with # and blank ones are skipped. A pipe may have no end, so the
// text is bounded.
func ReadKeys(r io.Reader) ([]string, error) {
	var list []string
	in := &io.LimitedReader{R: r, N: maxKeyFile + 1}
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		if text := strings.TrimSpace(lines.Text()); text != "" && !strings.HasPrefix(text, "#") {
			list = append(list, text)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	if in.N == 0 {
		return nil, fmt.Errorf("is larger than %d bytes", maxKeyFile)
	}
	if len(list) == 0 {
		return nil, errors.New("the file has no key")
	}
	return list, nil
}

// match returns the index of a key, −1 if unknown. Hashes of equal length are compared in constant time, and always all
// of them, so that timing reveals nothing.
func (k *Keys) match(key string) int {
	sum := sha256.Sum256([]byte(key))
	found := -1
	for i := range k.sums {
		found = subtle.ConstantTimeSelect(subtle.ConstantTimeCompare(sum[:], k.sums[i][:]), i, found)
	}
	return found
}

// authorize identifies the caller. The result names the caller's share of the prefix cache and of the queue.
func (g *guard) authorize(r *http.Request) (who string, err error) {
	if g.cfg.Keys == nil {
		return "anyone", nil
	}
	key, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !ok {
		key = r.Header.Get("X-Api-Key")
	}
	if key == "" {
		return "", &apiError{Status: http.StatusUnauthorized, Type: typeAuth, Code: "invalid_api_key",
			Message: "no API key was given; send the header \"Authorization: Bearer KEY\""}
	}
	i := g.cfg.Keys.match(key)
	if i < 0 {
		return "", &apiError{Status: http.StatusUnauthorized, Type: typeAuth, Code: "invalid_api_key",
			Message: "the API key is not known here"}
	}
	return fmt.Sprintf("key %d", i), nil
}
