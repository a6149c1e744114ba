package safetensors

import (
	"encoding/binary"
	"fmt"
	"runtime"
	"strings"
	"testing"
)

// raw makes a file of a header and n zero bytes.
func raw(head string, n int) []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(len(head)))
	return append(append(b, head...), make([]byte, n)...)
}

// one is a header of one tensor "a".
func one(dtype, shape, offsets string) string {
	return fmt.Sprintf(`{"a":{"dtype":%q,"shape":%s,"data_offsets":%s}}`, dtype, shape, offsets)
}

// twice is a header of two tensors of four bytes.
func twice(a, b string) string {
	return `{"a":{"dtype":"U8","shape":[4],"data_offsets":` + a + `},"b":{"dtype":"U8","shape":[4],"data_offsets":` +
		b + `}}`
}

// faults are files that must be refused, with a part of the reason.
var faults = []struct {
	name string
	file []byte
	want string
}{
	{"empty", nil, "file of 0 bytes is too small"},
	{"seven bytes", make([]byte, 7), "file of 7 bytes is too small"},
	{"no header", make([]byte, 8), "must start with '{'"},
	{"header past the cap", binary.LittleEndian.AppendUint64(nil, MaxHeader+1), "too large"},
	{"header length of all ones", []byte(strings.Repeat("\xff", 8)), "too large"},
	{"header beyond the file", raw("{}", 0)[:9], "beyond the file"},
	{"not UTF-8", raw("{\"\xff\":1}", 0), "not UTF-8"},
	{"leading space", raw(" {}", 0), "must start with '{'"},
	{"array", raw("[]", 0), "must start with '{'"},
	{"not JSON", raw("{a}", 0), "not JSON"},
	{"cut JSON", raw(`{"a":{"dtype":"U8"`, 0), "not JSON"},
	{"two objects", raw("{}{}", 0), "after its closing brace"},
	{"text after the object", raw("{}x", 0), "after its closing brace"},
	{"NUL padding", raw("{}\x00", 0), "after its closing brace"},
	{"tensor is a number", raw(`{"a":1}`, 0), `tensor "a": header has 1 where { belongs`},
	{"tensor is null", raw(`{"a":null}`, 0), `tensor "a": header has`},
	{"same tensor twice",
		raw(`{"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},`+
			`"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}}`, 0), `"a" appears twice`},
	{"same tensor twice, one escaped",
		raw(`{"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},`+
			`"\u0061":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}}`, 0), `"a" appears twice`},
	{"same field twice", raw(`{"a":{"dtype":"U8","dtype":"U8","shape":[0],"data_offsets":[0,0]}}`, 0),
		`"dtype" appears twice`},
	{"unknown field", raw(`{"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0],"x":1}}`, 0), `unknown key "x"`},
	{"unknown dtype", raw(one("F128", "[1]", "[0,16]"), 16), `unknown dtype "F128"`},
	{"dtype in lower case", raw(one("f32", "[1]", "[0,4]"), 4), `unknown dtype "f32"`},
	{"dtype is a number", raw(`{"a":{"dtype":1,"shape":[0],"data_offsets":[0,0]}}`, 0), "where a string belongs"},
	{"no dtype", raw(`{"a":{"shape":[0],"data_offsets":[0,0]}}`, 0), "dtype is missing"},
	{"no shape", raw(`{"a":{"dtype":"U8","data_offsets":[0,1]}}`, 1), "shape is missing"},
	{"shape is null", raw(one("U8", "null", "[0,1]"), 1), "where [ belongs"},
	{"no offsets", raw(`{"a":{"dtype":"U8","shape":[0]}}`, 0), "data_offsets must be"},
	{"three offsets", raw(one("U8", "[1]", "[0,1,1]"), 1), "it has 3"},
	{"negative dimension", raw(one("U8", "[-1]", "[0,1]"), 1), `"-1" is not a whole number`},
	{"fractional dimension", raw(one("U8", "[1.0]", "[0,1]"), 1), `"1.0" is not a whole number`},
	{"exponent dimension", raw(one("U8", "[1e0]", "[0,1]"), 1), `"1e0" is not a whole number`},
	{"dimension as text", raw(one("U8", `["1"]`, "[0,1]"), 1), "where a number belongs"},
	{"nested shape", raw(one("U8", "[[1]]", "[0,1]"), 1), "where a number belongs"},
	{"dimension of 2^63", raw(one("U8", "[9223372036854775808]", "[0,1]"), 1), "not a whole number"},
	{"dimension of 2^64+1", raw(one("U8", "[18446744073709551617]", "[0,1]"), 1), "not a whole number"},
	{"product past 2^63", raw(one("U8", "[4294967296,4294967296]", "[0,0]"), 0), "overflows"},
	{"element size past 2^63", raw(one("F64", "[2305843009213693952]", "[0,0]"), 0), "overflows"},
	{"product past 2^63 beside a zero", raw(one("U8", "[0,4294967296,4294967296]", "[0,0]"), 0), "overflows"},
	{"shape of 256 dimensions", raw(one("U8", "["+strings.Repeat("1,", 255)+"1]", "[0,1]"), 1), "more than 255"},
	{"shape larger than offsets", raw(one("F32", "[2]", "[0,4]"), 4), "takes 8 bytes, data_offsets [0 4] give 4"},
	{"shape smaller than offsets", raw(one("F32", "[1]", "[0,8]"), 8), "takes 4 bytes"},
	{"negative offset", raw(one("U8", "[1]", "[-1,0]"), 0), "not a whole number"},
	{"offset past 2^63", raw(one("U8", "[1]", "[18446744073709551615,0]"), 0), "not a whole number"},
	{"offsets reversed", raw(one("U8", "[1]", "[1,0]"), 1), "end before they begin"},
	{"data beyond the file", raw(one("U8", "[4]", "[0,4]"), 3), "beyond the 3 bytes"},
	{"overlap", raw(twice("[0,4]", "[3,7]"), 7), `tensor "b": begins at byte 3, inside`},
	{"same bytes twice", raw(twice("[0,4]", "[0,4]"), 4), `tensor "b": begins at byte 0, inside`},
	{"hole", raw(twice("[0,4]", "[5,9]"), 9), "leaving a hole after byte 4"},
	{"hole at the start", raw(one("U8", "[1]", "[1,2]"), 2), "leaving a hole after byte 0"},
	{"empty tensor inside another",
		raw(`{"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"b":{"dtype":"U8","shape":[0],"data_offsets":[2,2]}}`,
			4), "inside"},
	{"tail", raw(one("U8", "[1]", "[0,1]"), 2), "1 bytes of data belong to no tensor"},
	{"tail without tensors", raw("{}", 1), "1 bytes of data belong to no tensor"},
	{"metadata is text", raw(`{"__metadata__":"x"}`, 0), "__metadata__: header has x where {"},
	{"metadata value is a number", raw(`{"__metadata__":{"x":1}}`, 0), "where a string belongs"},
	{"metadata key twice", raw(`{"__metadata__":{"x":"","x":""}}`, 0), `"x" appears twice`},
	{"metadata twice", raw(`{"__metadata__":{},"__metadata__":{}}`, 0), `"__metadata__" appears twice`},
	{"deep nesting", raw(`{"a":`+strings.Repeat("[", 100000)+"}", 0), `tensor "a"`},
}

func TestFaults(t *testing.T) {
	for _, c := range faults {
		t.Run(c.name, func(t *testing.T) {
			_, err := Parse(c.file)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("error %v, want one with %q", err, c.want)
			}
		})
	}
}

func TestAccepted(t *testing.T) {
	for name, file := range map[string][]byte{
		"no tensors":     raw("{}", 0),
		"padding":        raw("{}      ", 0),
		"scalar":         raw(one("F32", "[]", "[0,4]"), 4),
		"empty tensor":   raw(one("F32", "[3,0]", "[0,0]"), 0),
		"empty metadata": raw(`{"__metadata__":{}}`, 0),
		"spaces inside":  raw(`{ "a" : {"shape" : [ 1 ] , "data_offsets" : [0, 1], "dtype" : "U8" } }`, 1),
		"empty name":     raw(`{"":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}`, 1),
		"later tensor first": raw(
			`{"b":{"dtype":"U8","shape":[1],"data_offsets":[1,2]},"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}`,
			2),
		"empty tensor between": raw(
			`{"b":{"dtype":"U8","shape":[1],"data_offsets":[1,2]},"z":{"dtype":"U8","shape":[0],"data_offsets":[1,1]},"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}`,
			2),
	} {
		if _, err := Parse(file); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestMemoryBound parses headers made to cost the most per byte and holds the total allocated to a multiple of their
// size.
func TestMemoryBound(t *testing.T) {
	const factor = 100 // bytes allocated, garbage included, per byte of header
	tensors := make([]string, 20000)
	for i := range tensors {
		tensors[i] = fmt.Sprintf(`"%x":{"dtype":"U8","shape":[],"data_offsets":[%d,%d]}`, i, i, i+1)
	}
	long := make([]string, 1000)
	for i := range long {
		long[i] = fmt.Sprintf(`"%x":{"dtype":"U8","shape":[0%s],"data_offsets":[0,0]}`, i,
			strings.Repeat(",0", maxRank-1))
	}
	for name, head := range map[string]string{
		"long shapes":  "{" + strings.Join(long, ",") + "}",
		"many tensors": "{" + strings.Join(tensors, ",") + "}",
		"long name":    `{"` + strings.Repeat("x", 1<<20) + `":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}}`,
		"many keys":    `{"__metadata__":{` + strings.TrimSuffix(strings.Repeat(`"":"",`, 100000), ",") + "}}",
	} {
		file := raw(head, len(tensors))
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, _ = Parse(file)
		runtime.ReadMemStats(&after)
		if got := after.TotalAlloc - before.TotalAlloc; got > factor*uint64(len(file)) {
			t.Errorf("%s: %d bytes allocated for a file of %d", name, got, len(file))
		} else {
			t.Logf("%s: %.1f bytes allocated per byte", name, float64(got)/float64(len(file)))
		}
	}
}
