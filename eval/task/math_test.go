package task

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"antiphase/eval"
)

func TestExtractAnswer(t *testing.T) {
	for text, want := range map[string]string{
		"48/2 = 24.\n#### 72":                                  "72",
		"so #### 1,000\nQuestion: next":                        "1,000",
		`Then $x=\boxed{\frac{1}{2}}$ and \boxed{\sqrt{2}+1}.`: `\sqrt{2}+1`,
		"Hence the answer is 12. Really.":                      "12",
		"The answer is: $5":                                    "$5",
		"The answer is 5. No: the answer is 7.":                "7",
		"#### 5\nthat is wrong\n#### 6":                        "6",
		"There are 3 and then 4,500 dollars":                   "4,500",
		"first 2, then 7.5 apples.":                            "7.5",
		"nothing":                                              "",
		"#### ":                                                "",
		`\boxed{5, but the answer is 7.`:                       "7", // a brace that is never closed
		`\boxed{5 {and} 6 or 8`:                                "8",
		`\boxed{{a}{b}} c}`:                                    "{a}{b}",
		"The ANSWER IS 4\nand not 9":                           "4",
		"The answer is 2.5. So":                                "2.5",
		"#### 6\nof \\boxed{7}, or 8":                          "6",
		"The answer is. So 5":                                  "", // nothing is said before the point
		"down to -7":                                           "-7",
		"-$3,500.25, paid":                                     "-$3,500.25",
		"The Answer is ȺȺȺȺȺȺȺȺȺȺȺȺȺȺȺ 5":                      "ȺȺȺȺȺȺȺȺȺȺȺȺȺȺȺ 5", // in lower case three bytes each
	} {
		if got := extractAnswer(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestSameAnswer(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"72", "72.0", true}, {"72", "73", false}, {"1,000", "1000", true}, {"$18", "18", true},
		{"9 (apples)", "9", true},
		{"18 dollars", "18", true}, {`\frac{1}{2}`, "0.5", true}, {`\dfrac12`, "1/2", true}, {"50%", "50", true},
		{"x=5", "5", true}, {`10-4 n`, "$-4n+10$", true}, {"b ^ { 2 } - 9 a ^ { 2 }", "(b-3a)(b+3a)", true},
		{"b^2-9a^2", "b^2+9a^2", false}, {`2\sqrt{3}`, `\sqrt{12}`, true}, {`\sqrt{x^2}`, "x", true},
		{"(45,2),(-10,-9)", "(45, 2), (-10, -9)", true}, {"(1,2)", "(2,1)", false}, {"[0,1)", "(0,1)", false},
		{"[0, 1)", "[0,1)", true},
		{`\text{yes}`, "Yes", true}, {"shortage", "surplus", false}, {"", "", false}, {`90^\circ`, "90", true},
		{`3\pi`, "9.42477796", true},
		{"-3", "3", false}, {"2^3^2", "512", true}, {"2x", "2", false}, {"2z+z", "3z", true}, {"a+Z", "Z+a", true},
		{"z", "Z", true}, {"5 miles per hour", "5", true}, {"-2^2", "-4", true}, {"1e", "1", false},
		{"((((", "1", false},
		{"Dane", "Dean", false}, {"listen", "silent", false}, {"ab", "ba", true}, {`3\frac{1}{2}`, "3.5", true},
		{`-2\tfrac14`, "-2.25", true}, {"3 1/2", "3.5", true}, {"31/2", "15.5", true},
		// Only a proper fraction makes a mixed number.
		{`3\frac{2}{2}`, "3", true}, {`3\frac{5}{2}`, "7.5", true}, {"-3 1/2", "-3.5", true}, {"3 1/2", "1.5", false},
		{"1000000", "1000001", false}, {"123456789", "123456788", false}, {"1000000.5", "1000000.4", true},
		{"0.1+0.2", "0.3", true}, {"1/3", "0.333333", true}, {"1/3", "0.333", false},
		{"(1,2]", "(1,2)", false}, {"(1,2)", "(1,2,3)", false}, {"1,2", "(1,2)", false}, {"(1, x+x)", "(1,2x)", true},
		{"(1,(2,3))", "(1,(2,4))", false}, {"(1,234)", "1234", false},
		{"12,345,678", "12345678", true}, {"1,23", "123", false}, {"abc", "cba", true}, {"cat", "act", false},
		{"xyz+1", "1+zyx", true}, {"pixy", "yx*pi", true},
		{"1/0", "1/0", true}, {"1/0", "2/0", false}, {`\sqrt{0-x}`, `\sqrt{0-x-x}`, false}, {"5 (m)", "5", true},
		{"x = 5", "y=5", true}, {"f(x)=2x", "2x", true}, {"5 m", "5", false},
		{"(1,)", "(1,2)", false}, {"1,(2,3)", "1,(2,2+1)", true}, {"(2,3),1", "(2,2+1),1", true},
		{"(1,2),(3,4)", "(1,2),(3,5)", false}, // brackets of parts of a list
		{"dane", "d*a*n*e", false}, {"2πrh", "2hr*pi", true}, {"sqrtab", "ba^.5", true}, {"3 5/2", "5.5", false},
		{"1)", "1", false}, {`\frac{\sqrt{2}}{2}`, "0.70710678", true}, {`\frac{1}{1+\frac{1}{2}}`, "2/3", true},
		{"1000000.5", "1000000", true},
	} {
		if got := sameAnswer(c.a, c.b); got != c.want {
			t.Errorf("%q and %q: %v, want %v (%q, %q)", c.a, c.b, got, c.want, normalAnswer(c.a), normalAnswer(c.b))
		}
		if sameAnswer(c.b, c.a) != c.want {
			t.Errorf("%q and %q: not the same both ways", c.a, c.b)
		}
	}
}

func TestEvaluate(t *testing.T) {
	vars := map[rune]float64{'x': 3, 'y': 5}
	for text, want := range map[string]float64{
		"1+2*3": 7, "(1+2)*3": 9, "2x": 6, "xy": 15, "2(x+1)": 8, "x^2y": 45, "-x^2": -9, "10/2/5": 1, "2--3": 5,
		"sqrt(16)": 4, "sqrt4": 2, "3 4": 34, ".5": 0.5,
		"2^-1": 0.5, "-(-x)": 3, "+x": 3, "-+-x": 3, "x/y/x": 0.2, "2/xy": 10. / 3, "(x)(y)": 15, "x(y)2": 30,
		"sqrt(x)sqrt(x)": 3, "2pi": 2 * math.Pi, "pix": 3 * math.Pi, "2^2^3": 256, "1-2-3": -4, "8/2*4": 16,
	} {
		if got, err := evaluate(text, vars); err != nil || !near(got, want, 1e-12) {
			t.Errorf("%q: %g, %v, want %g", text, got, err, want)
		}
	}
	for n := range 80 { // names are looked for up to the last letter
		if got, err := evaluate(strings.Repeat("1+", n)+"x", vars); err != nil || got != float64(n+3) {
			t.Errorf("%d and x: %g, %v", n, got, err)
		}
	}
	// Long, not deep.
	for _, long := range []string{strings.Repeat("(1)+", 150) + "(1)", strings.Repeat("1^1+", 150) + "1"} {
		if got, err := evaluate(long, vars); err != nil || got != 151 {
			t.Errorf("%q: %g, %v", long, got, err)
		}
	}
	for _, bad := range []string{"", "1+", "(1", "1)", "z", "1/0", "x..2", "1..2", "*2", "2*", "x^", "()", "sqrt",
		"sqrt(0-1)", "2^9999", ")", "x=1", strings.Repeat("(", 200) + "1" + strings.Repeat(")", 200), "2" +
			strings.Repeat("^2", 200), "1" + strings.Repeat("^1", 200)} {
		if got, err := evaluate(bad, vars); err == nil {
			t.Errorf("%q: %g", bad, got)
		}
	}
}

// Examples of mathematics fill what the context has left besides question and answer, and the result says how many
// there were; the length of a chain of thought is in tokens.
func TestMathExamplesFit(t *testing.T) {
	rows := ""
	for i := range 8 {
		rows += fmt.Sprintf(
			"{\"question\":\"What is %d+1?\",\"answer\":\"%d\",\"solution\":\"One more.\\nAnswer: so\\n#### %d\"}\n",
			i, i+1, i+1)
	}
	dir := setFiles(t, map[string]string{"math/carp_en_test.jsonl": rows})
	question := len("Question: What is 0+1?\nAnswer:")
	example := len("Question: What is 0+1?\nAnswer: One more.\nAnswer: so\n#### 1\n\n")
	tokens := func(bytes int) int { return (bytes + 3) / 4 }
	for _, n := range []int{0, 1, 3} {
		context := 10 + tokens(question) + n*tokens(example) // one token less has room for one example less
		for _, less := range []int{0, 1} {
			opt := eval.Options{Data: dir, Shots: 5, Set: map[string]string{"carp_en.max_tokens": "10"}}
			j := prepared(t, lookup(t, "carp_en"), opt, context-less)
			want := float64(max(n-less, 0))
			if got := j.Config["examples_fit"]; got != want ||
				strings.Count(j.Gold[0].Context, "Question:") != int(want)+1 {
				t.Errorf("a context of %d: %v examples, want %g: %q", context-less, got, want, j.Gold[0].Context)
			}
		}
	}
	// Rows may state a problem in place of a question; no example is the question itself.
	dir2 := setFiles(t, map[string]string{"math/carp_en_test.jsonl": strings.ReplaceAll(rows, `"question"`,
		`"problem"`)})
	for i, g := range prepared(t, lookup(t, "carp_en"), eval.Options{Data: dir2, Shots: 7}, 4096).Gold {
		for k := range 8 {
			if n := strings.Count(g.Context, fmt.Sprintf("What is %d+1?", k)); n != 1 ||
				strings.Count(g.Context, "####") != 7 {
				t.Errorf("question %d has problem %d %d times: %q", i, k, n, g.Context)
			}
		}
	}
	j := prepared(t, lookup(t, "carp_en"), eval.Options{Data: dir, Shots: 0}, 512)
	got, err := j.Ask(t.Context(), &pen{text: "forty bytes of reasoning, then it is 3.."}, []int{2})
	if err != nil || got[0].Values["length"] != 10 || got[0].Values["acc"] != 1 {
		t.Errorf("%+v, %v", got, err)
	}
}

// Sets that cannot be asked are refused with the file's own fault; without examples nobody needs their file; a stand-in
// has examples too. The least context has room for one token of each.
func TestMathSets(t *testing.T) {
	const good = `{"question":"What is 1+1?","answer":"2","solution":"#### 2"}` + "\n"
	for _, c := range []struct {
		name, test, train string
		shots, context    int
		want              string // of the refusal
	}{
		{"no question", `{"answer":"2"}`, "", 0, 256, "question"},
		{"a problem", `{"problem":"1+1","answer":"2"}`, "", 0, 256, ""},
		{"no answer", `{"problem":"1+1"}`, "", 0, 256, "answer"},
		{"no file of examples", good, "", 0, 256, ""},
		{"a file of examples is missing", good, "", 1, 256, gsm8kTrain},
		{"a bad set, good examples", "{", good + good, 1, 256, "mawps_test"},
		{"bad examples", good, good + `{"question":"Q?"}`, 1, 256, "answer"},
		{"a context of one", good, "", 0, 1, "no room"},
		{"a context of two", good, "", 0, 2, ""},
	} {
		files := map[string]string{"math/mawps_test.jsonl": c.test}
		if c.train != "" {
			files[gsm8kTrain+".jsonl"] = c.train
		}
		opt := eval.Options{Data: setFiles(t, files), Shots: c.shots}
		opt.Measure([]eval.Target{modelOf("stub", &knower{}, c.context)})
		if _, err := opt.Prepare(t.Context(), lookup(t, "mawps")); (err == nil) != (c.want == "") || err != nil &&
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
	for _, shots := range []int{0, 1, 3} {
		j := prepared(t, lookup(t, "mawps"), eval.Options{Shots: shots}, 4096)
		if got := j.Config["examples_fit"]; got != float64(shots) || strings.Count(j.Gold[1].Context, "####") != shots {
			t.Errorf("a stand-in with %d examples: %v, %q", shots, got, j.Gold[1].Context)
		}
	}
}
