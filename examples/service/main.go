// Command service is a small HTTP service on Antiphase's packages: it loads a Hugging Face folder and continues what is
// posted to it.
//
//	go run ./examples/service FOLDER &
//	curl -d "Once upon a time" http://127.0.0.1:8090/
package main

import (
	"fmt"
	"io"
	"log"
	"net/http"
	"os"

	"antiphase/device/cpu"
	"antiphase/hf"
	"antiphase/infer"
	"antiphase/layer"
	"antiphase/tokenizer"
)

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: service FOLDER")
	}
	e, tok, err := open(os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	log.Print("listening on 127.0.0.1:8090")
	log.Fatal(http.ListenAndServe("127.0.0.1:8090", continuations(e, tok)))
}

// open loads a model folder into a batching engine.
func open(dir string) (*infer.Engine, *tokenizer.Tokenizer, error) {
	m, f, err := hf.Open(cpu.New(cpu.Options{Precision: cpu.FP32}), dir, layer.Memory{})
	if err != nil {
		return nil, nil, err
	}
	f.Close()
	b, err := hf.ReadFile(dir, "tokenizer.json", tokenizer.MaxFile)
	if err != nil {
		return nil, nil, err
	}
	tok, err := tokenizer.Parse(b)
	if err != nil {
		return nil, nil, err
	}
	e, err := infer.New(m, tok, infer.Options{})
	return e, tok, err
}

// continuations streams text after what was posted. Concurrent requests share the engine's batches; one whose client
// leaves stops within a step.
func continuations(e *infer.Engine, tok *tokenizer.Tokenizer) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		prompt, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<16))
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		req := infer.Request{IDs: tok.Encode(string(prompt)),
			Sampling: infer.Sampling{Temperature: 0.8, TopP: 0.95, MaxTokens: 64}}
		err = e.Generate(r.Context(), []infer.Request{req}, func(_ int, ev infer.Event) bool {
			_, err := fmt.Fprint(w, ev.Text)
			return err == nil && http.NewResponseController(w).Flush() == nil
		})
		if err != nil {
			log.Print(err)
		}
	})
}
