package metrics

import (
	"fmt"
	"hash/crc32"
	"math"
	"slices"
	"strings"
	"testing"
)

// Numbers keep their digits: eight of measures, six of lists, milliseconds of the time; counts are exact.
func TestDigits(t *testing.T) {
	r := example(1_234_567)
	r.Loss, r.LR, r.GradNorm, r.Percent = 1.2345678, 1.2345678e-5, 12345.678, 0.12345678
	r.Time, r.Tokens, r.DataPos = 1_700_000_000.123, 1<<53-1, 1<<53-3
	r.Lambda, r.Epochs, r.Groups = []float64{0.123456, 1.23456}, []float64{12.3456}, Groups{{"q", 0.00123456}}
	line := r.Append(nil)
	got, sealed, err := parse(line[:len(line)-1])
	if err != nil || !sealed {
		t.Fatalf("%s: %v", line, err)
	}
	if got.Step != r.Step || got.Total != r.Total || got.Loss != r.Loss || got.LR != r.LR ||
		got.GradNorm != r.GradNorm || got.Percent != r.Percent || got.Time != r.Time || got.Tokens != r.Tokens ||
		got.DataPos != r.DataPos ||
		!slices.Equal(got.Lambda, r.Lambda) || !slices.Equal(got.Epochs, r.Epochs) ||
		!slices.Equal(got.Groups, r.Groups) {
		t.Errorf("%s became %+v", line, got)
	}
	r.Loss, r.Lambda, r.Epochs, r.Groups = 1.23456789, []float64{0.12345678}, []float64{12.345678},
		Groups{{"q", 0.0012345678}}
	r.LossEMA, r.MFU = math.Inf(-1), math.Inf(1)
	text := string(r.Append(nil))
	for _, want := range []string{
		`{"step":1234567,"total_steps":100,`, `,"loss":1.2345679,`, `,"time":1700000000.123,`,
		`,"epochs":[12.3457],"grad_groups":{"q":0.00123457},"lambda":[0.123457],"crc":"`,
	} {
		if !strings.Contains(text, want) || strings.Contains(text, "mfu") || strings.Contains(text, "loss_ema") {
			t.Errorf("no %s, or an infinite number, in %s", want, text)
		}
	}
	r.Time = 0
	if line := string(r.Append(nil)); strings.Contains(line, `"time"`) {
		t.Errorf("a time that nobody noted: %s", line)
	}
	r.Valid, r.Warn, r.Epochs, r.Groups = math.Inf(1), 0, nil, nil
	for _, key := range []string{"valid_loss", "warn\"", "epochs", "grad_groups"} {
		if line := string(r.Append(nil)); strings.Contains(line, `"`+key) {
			t.Errorf("%s is written: %s", key, line)
		}
	}
}

// The checksum is CRC-32C of everything before its comma, in eight digits: files of other versions stay readable.
func TestChecksumByHand(t *testing.T) {
	zeros := 0
	for step := range 64 {
		r := example(step + 1)
		line := string(r.Append(nil))
		body, sum, ok := strings.Cut(line, `,"crc":"`)
		want := fmt.Sprintf("%08x\"}\n", crc32.Checksum([]byte(body), crc32.MakeTable(crc32.Castagnoli)))
		if !ok || sum != want {
			t.Fatalf("%s: want %s", line, want)
		}
		if want[0] == '0' {
			zeros++
		}
	}
	if zeros == 0 {
		t.Error("no checksum begins with a zero")
	}
}

// A row may come after others in a buffer: its checksum is its own.
func TestAppendAfterOthers(t *testing.T) {
	first, second := example(1), example(2)
	b := second.Append(first.Append(nil))
	if alone := string(second.Append(nil)); !strings.HasSuffix(string(b), alone) ||
		strings.Count(string(b), "\n") != 2 {
		t.Errorf("%s does not end with %s", b, alone)
	}
}
