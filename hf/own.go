package hf

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"antiphase/model"
)

// parseOwn reads a folder of our own class. Its configuration is stored twice, in our terms and in those of
// transformers, and both must agree.
func (f *Folder) parseOwn(o *object) error {
	box := o.object("antiphase")
	if box == nil {
		o.refuse("antiphase", "must be an object: this model type cannot be read without it")
		return *o.err
	}
	raw, _ := box.get("model")
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(&f.Config); err != nil {
		box.refuse("model", err.Error())
		return *o.err
	}
	c := f.Config
	if err := c.Check(); err != nil {
		return fmt.Errorf("config.json: antiphase: model: %w", err)
	}
	var err error
	if f.layout, err = canonical(c, llamaNames); err != nil {
		return err
	}
	if err := o.agree(c); err != nil {
		return err
	}
	o.tokens(f)
	o.rest(idle)
	return *o.err
}

// agree rejects a key whose value does not follow from our configuration.
func (o *object) agree(c model.Config) error {
	want, err := describe(c, Antiphase)
	if err != nil {
		return fmt.Errorf("config.json: %w", err)
	}
	for _, key := range slices.Sorted(maps.Keys(want)) {
		if idle[key] {
			continue
		}
		b, err := json.Marshal(want[key])
		if err != nil {
			return err
		}
		if raw, ok := o.get(key); ok && !sameJSON(raw, b) {
			o.refuse(key, "does not agree with antiphase.model, from which it follows")
		}
	}
	return nil
}

// sameJSON compares values, not notation: 1e4 is 10000.
func sameJSON(a, b []byte) bool {
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && reflect.DeepEqual(x, y)
}
