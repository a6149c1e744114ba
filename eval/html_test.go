package eval

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"reflect"
	"regexp"
	"strings"
	"testing"
)

func render(t *testing.T, r *Report) string {
	t.Helper()
	var b bytes.Buffer
	if err := r.HTML(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// wellFormed fails where tags are not balanced or something is not escaped: the page is XML but for its first line.
func wellFormed(t *testing.T, page string) {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(strings.Replace(page, "<!doctype html>", "", 1)))
	d.Entity = xml.HTMLEntity
	for {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatalf("page: %v near %q", err, page[max(0, d.InputOffset()-80):min(int64(len(page)), d.InputOffset()+80)])
		}
	}
}

func TestHTML(t *testing.T) {
	r := fakeReport()
	page := render(t, r)
	wellFormed(t, page)
	for _, bad := range []string{"http", "<script", "src=", "href=", "url(", "@import", "NaN", "<b>tag", "ZgotmplZ", "%!"} {
		if at := strings.Index(page, bad); at >= 0 {
			t.Errorf("the page holds %q: …%s…", bad, page[max(0, at-60):min(len(page), at+60)])
		}
	}
	for _, want := range []string{
		"&lt;script&gt;alert(1)&lt;/script&gt;", "&lt;b&gt;markup&lt;/b&gt;", "&lt;|endoftext|&gt;", "A1 − λA2", "λ by layer", "prefers-color-scheme: dark",
		"1.3312 ± 0.0060", "a&lt;b", "is better in",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	// two line charts of loss, two tests, three panels and layers, one map and three, the scale, λ
	if n := strings.Count(page, "<svg"); n != 2+2+3+1+1+3+1+1 {
		t.Errorf("%d drawings", n)
	}
}

// Every coordinate is a number, and none is left of or above the page.
func TestHTMLCoordinates(t *testing.T) {
	page := render(t, fakeReport())
	number := regexp.MustCompile(`^[0-9]+(\.[0-9]+)?$`)
	for _, m := range regexp.MustCompile(` (x|y|x1|x2|y1|y2|cx|cy|width|height|fill-opacity)="([^"]*)"`).FindAllStringSubmatch(page, -1) {
		if !number.MatchString(m[2]) {
			t.Fatalf("%s", m[0])
		}
	}
}

// spoil makes every number of a value NaN, as in a model that has diverged.
func spoil(v reflect.Value) {
	switch v.Kind() {
	case reflect.Float64:
		v.SetFloat(math.NaN())
	case reflect.Slice:
		for i := range v.Len() {
			spoil(v.Index(i))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			spoil(v.Field(i))
		}
	}
}

func TestHTMLOfLittle(t *testing.T) {
	bad := fakeReport()
	spoil(reflect.ValueOf(&bad.Sides[0]).Elem())
	long := fakeReport()
	long.Sides = append(long.Sides, long.Sides[1], long.Sides[0], long.Sides[1])
	for name, r := range map[string]*Report{
		"nothing": {}, "empty sides": {Sides: []Side{{Name: "a"}, {Name: "b"}}}, "one side": {Sides: fakeReport().Sides[1:]},
		"diverged": bad, "five sides": long,
		"one step":  {Sides: []Side{{Name: "a", Curve: []CurvePoint{{1, 5, 5}}}}},
		"one layer": {Sides: []Side{{Name: "a", Arch: "diff", Lambda: []float64{0.3}}}},
	} {
		page := render(t, r)
		wellFormed(t, page)
		for _, word := range []string{"NaN", "Inf"} {
			if at := strings.Index(page, word); at >= 0 {
				t.Errorf("%s: the page holds what is no number: …%s…", name, page[max(0, at-80):at+20])
			}
		}
	}
}

func TestTicks(t *testing.T) {
	for _, c := range []struct {
		s    scale
		n    int
		want string
	}{
		{scale{lo: 0, hi: 1}, 5, "0.0 0.2 0.4 0.6 0.8 1.0"},
		{scale{lo: 1.17, hi: 1.72}, 5, "1.2 1.4 1.6"},
		{scale{lo: -0.2, hi: 0.3}, 5, "−0.2 −0.1 0.0 0.1 0.2 0.3"},
		{scale{lo: 0, hi: 30000}, 5, "0 10k 20k 30k"},
		{scale{lo: 1, hi: 512, log: true}, 5, "2 8 32 128 512"},
		{scale{lo: 1, hi: 3, whole: true}, 5, "1 2 3"},
		{scale{lo: 1, hi: 1}, 5, "1"},
	} {
		if got := strings.Join(tickText(c.s.ticks(c.n)), " "); got != c.want {
			t.Errorf("%+v: %q, want %q", c.s, got, c.want)
		}
	}
}
