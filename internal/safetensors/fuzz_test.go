package safetensors

import (
	"bytes"
	"testing"
)

// FuzzParse: no input may panic, and a file that is accepted can be written again from its parts and says the same.
func FuzzParse(f *testing.F) {
	f.Add([]byte{})
	f.Add(raw("{}", 0))
	f.Add(raw(one("F32", "[2,1]", "[0,8]"), 8))
	f.Add(raw(`{"__metadata__":{"format":"pt"},"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},`+
		`"b":{"dtype":"BF16","shape":[1],"data_offsets":[0,2]}}  `, 2))
	f.Add(raw(one("I64", "[9223372036854775807]", "[0,9223372036854775807]"), 0))
	f.Fuzz(func(t *testing.T, b []byte) {
		file, err := Parse(b)
		if err != nil {
			return
		}
		var entries []Entry
		for _, info := range file.Infos() {
			v, err := file.Bytes(info.Name)
			if err != nil {
				t.Fatal(err)
			}
			_, _ = file.Float32s(info.Name)
			_, _ = file.Int64s(info.Name)
			entries = append(entries, FromBytes(info.Name, info.DType, info.Shape, v))
		}
		var out bytes.Buffer
		if err := Write(&out, entries, file.Metadata()); err != nil {
			t.Fatal(err)
		}
		again, err := Parse(out.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		for _, info := range file.Infos() {
			x, _ := file.Bytes(info.Name)
			y, err := again.Bytes(info.Name)
			if err != nil || !bytes.Equal(x, y) {
				t.Fatalf("tensor %q changed: %v", info.Name, err)
			}
		}
	})
}
