package data

import (
	"encoding/json"
	"strings"
	"testing"
)

// A value of the wrong kind is named as JSON has it: readers of the error need not know Go.
func TestJSONError(t *testing.T) {
	type inner struct {
		Gold *int `json:"gold"`
	}
	type row struct {
		inner
		Text    string   `json:"text"`
		Choices []string `json:"choices"`
		Right   bool     `json:"right"`
		X       float64  `json:"x"`
		Parts   []struct{ Title string }
	}
	for text, want := range map[string]string{
		`"x"`:                       "want an object, found a string",
		`5`:                         "want an object, found a number",
		`[1]`:                       "want an object, found an array",
		`{"text": 5}`:               `field "text": want a string, found a number`,
		`{"text": {}}`:              `field "text": want a string, found an object`,
		`{"choices": "a"}`:          `field "choices": want an array, found a string`,
		`{"choices": [1]}`:          `field "choices": want a string, found a number`,
		`{"right": "yes"}`:          `field "right": want true or false, found a string`,
		`{"x": true}`:               `field "x": want a number, found true or false`,
		`{"gold": 1.5}`:             `gold": want a whole number, found the number 1.5`,
		`{"Parts": [{"Title": 3}]}`: `field "Parts.Title": want a string, found a number`,
	} {
		var r row
		err := JSONError(json.Unmarshal([]byte(text), &r))
		if err == nil || !strings.HasSuffix(err.Error(), want) || strings.Contains(err.Error(), "Go ") {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

// A line whose text the decoder would change is an error.
func TestReadJSON(t *testing.T) {
	for line, want := range map[string]string{`{"text":"a\ud83d\ude00"}`: "",
		`{"text":"a\ud83d"}`: `\ud83d stands without`, "{\"text\":\"\xe9\"}": "is not UTF-8",
		`{"text":5}`: "want a string, found a number", `{"text":`: "unexpected end of JSON input",
		"{\"text\":\"\xe9": "is not UTF-8", "{\"text\":5,\"\xe9\":0}": "is not UTF-8"} {
		var row struct{ Text string }
		if err := ReadJSON([]byte(line), &row); (err == nil) != (want == "") || err != nil &&
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", line, err, want)
		}
	}
}

// A line may have fields like "text" in another case: only "text" itself is the document, wherever it stands. Without
// it the one that is alike is taken.
func TestTextBesideOthers(t *testing.T) {
	for line, want := range map[string]string{
		`{"text":"a","Text":"b"}`:             "a",
		`{"Text":"b","text":"a"}`:             "a",
		`{"text":"a","TEXT":7}`:               "a",
		`{"text":"a","TEXT":"\ud800"}`:        "a",
		`{"TEXT":"a","text":"\ud800"}`:        "\xff",
		`{"text":"say \"Text\"","meta":null}`: `say "Text"`,
		`{"title":"Text","text":"a"}`:         "a",
		`{"Text":"b"}`:                        "b",
		`{"text":"a","text":"b"}`:             "b",
		`{"text":"a"}`:                        "a",
	} {
		if got, err := textField([]byte(line)); err != nil || got != want {
			t.Errorf("%s: %q, %v; want %q", line, got, err, want)
		}
	}
	for _, line := range []string{`{"text":7,"Text":"b"}`, `{"text":null,"x":1}`, `{"Text":"b","text":"a"`, `"Text"`, `"`} {
		if got, err := textField([]byte(line)); err == nil {
			t.Errorf("%s is %q", line, got)
		}
	}
}
