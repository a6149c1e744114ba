package hf

import (
	"bytes"
	"fmt"
	"strings"
)

// Card is a model card: the README.md next to the weights.
type Card struct {
	Name   string
	Class  Class
	About  string      // a sentence on the architecture, and one on the origin of the weights
	Facts  [][2]string // a table: name and value
	Recipe []byte      // the run's recipe as JSON, nil for none
}

// Markdown is the card's text.
func (c *Card) Markdown() []byte {
	var b bytes.Buffer
	b.WriteString("---\nlibrary_name: transformers\npipeline_tag: text-generation\ntags:\n- antiphase\n")
	if c.Class != Llama {
		b.WriteString("- differential-transformer\n")
	}
	fmt.Fprintf(&b, "---\n\n# %s\n\n%s\n\n| | |\n|---|---|\n", c.Name, c.About)
	for _, f := range c.Facts {
		fmt.Fprintf(&b, "| %s | %s |\n", cell(f[0]), cell(f[1]))
	}
	trust := ""
	if c.Class == Antiphase {
		trust = ", trust_remote_code=True"
	}
	fmt.Fprintf(&b, `
## Use

`+"```python"+`
from transformers import AutoModelForCausalLM, AutoTokenizer

folder = "path/to/this/folder"
tokenizer = AutoTokenizer.from_pretrained(folder)
model = AutoModelForCausalLM.from_pretrained(folder%s)
ids = tokenizer("Once", return_tensors="pt")
print(tokenizer.decode(model.generate(**ids, max_new_tokens=50)[0]))
`+"```"+`
`, trust)
	if trust != "" {
		b.WriteString("\ntransformers has no class for this architecture: the folder brings its own, " +
			"`modeling_antiphase.py`, to be read before it is trusted.\n")
	}
	fmt.Fprint(&b, "\n`antiphase generate --model path/to/this/folder Once` runs it without Python.\n")
	if c.Recipe != nil {
		fmt.Fprintf(&b, "\n## Recipe\n\n```json\n%s\n```\n", bytes.TrimSpace(c.Recipe))
	}
	return b.Bytes()
}

// cell escapes a value for a table cell.
func cell(s string) string {
	return strings.NewReplacer("|", `\|`, "\n", " ").Replace(s)
}
