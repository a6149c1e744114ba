package chat_test

import (
	"fmt"

	"antiphase/tokenizer/chat"
)

func ExampleParse() {
	t, err := chat.Parse("{% for m in messages %}<{{ m.role }}>{{ m.content }}{{ eos_token }}{% endfor %}{% if "+
		"add_generation_prompt %}<assistant>{% endif %}",
		map[string]string{"eos_token": "|"})
	if err != nil {
		fmt.Println(err)
		return
	}
	text, err := t.Render(chat.Conversation{Messages: []chat.Message{{Role: "user", Content: "Hello"}}, Generate: true})
	fmt.Println(text, err)
	// Output: <user>Hello|<assistant> <nil>
}
