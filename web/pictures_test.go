package web_test

import (
	"os"
	"path/filepath"
	"testing"

	"antiphase/internal/browser"
)

// TestPictures makes the pictures of the README from a server that is running:
//
//	antiphase serve
//	ANTIPHASE_PICTURES=docs ANTIPHASE_URL=http://127.0.0.1:8080 go test ./web -run TestPictures
func TestPictures(t *testing.T) {
	dir, url := os.Getenv("ANTIPHASE_PICTURES"), os.Getenv("ANTIPHASE_URL")
	if dir == "" || url == "" {
		t.Skip("ANTIPHASE_PICTURES names no folder, or ANTIPHASE_URL no server")
	}
	if !filepath.IsAbs(dir) {
		dir = filepath.Join("..", dir)
	}
	b := browser.Open(t)
	save := func(p *browser.Page, name string) {
		if err := os.WriteFile(filepath.Join(dir, name), p.Screenshot(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	lab := b.Page(t, browser.Look{Width: 1200, Height: 860})
	lab.Goto(url + os.Getenv("ANTIPHASE_LAB"))
	lab.Wait(arrived)
	lab.Eval(`document.querySelector(".legend").scrollIntoView()`, nil)
	lab.Eval("new Promise(f => setTimeout(f, 300))", nil)
	save(lab, "lab.png")

	chat := b.Page(t, browser.Look{Width: 1000, Height: 620})
	chat.Goto(url + "/#chat")
	chat.Wait(`document.querySelector("#chat-say")`)
	chat.Eval(setting("temperature", "0"), nil)
	chat.Eval(setting("max_tokens", "40"), nil)
	chat.Click("#chat-say")
	chat.Type(
		"The magic code is Naples 42. Rosa was in the harbor. Which magic code begins with Naples? The magic code is")
	chat.Click("#chat-send")
	chat.Wait(idle)
	chat.Hover(".answer .tok:nth-child(2)", 0.5, 0.5)
	chat.Wait(`!document.querySelector("#tip").hidden`)
	save(chat, "chat.png")
}
