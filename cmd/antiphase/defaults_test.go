package main

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

// standing are the defaults that are not zero. They decide results, limits and what is deleted: a change is a decision,
// to be made here, in the help texts and in docs/serving.md.
var standing = map[string]string{
	"--color": "auto", "--device": "auto", "--kv-cache": "auto", "--precision": "auto",
	"ablation --arch": "diff", "ablation --seed": "1", "ablation --size": "tiny", "attend --max-cells": "1048576",
	"attend --out": "attention.html",
	"bench --reps": "10", "bench --warmup": "3", "bench attention --arch": "[all]", "bench attention --dim": "2048",
	"bench attention --head": "128",
	"bench attention --seq":  "[2048,8192]", "bench attention --tokens": "32768", "bench decode --arch": "[all]",
	"bench decode --batch": "[1,8]",
	"bench decode --chunk": "0", "bench decode --context": "1024", "bench decode --prompts": "1",
	"bench decode --size": "[small]",
	"bench gemm --arch":   "[transformer]", "bench gemm --rows": "[1,8,64]", "bench gemm --size": "[small]",
	"bench serve --batch":    "[1,32]",
	"bench serve --deadline": "10s", "bench serve --ignore-eos": "true", "bench serve --output": "32",
	"bench serve --prompt": "64", "bench serve --rate": "1",
	"bench serve --requests": "100", "bench serve --seed": "1", "bench serve --url": "http://127.0.0.1:8080",
	"bench serve --vocab": "256",
	"bench train --arch":  "[all]", "bench train --size": "[small]", "bench train --steps": "10",
	"chat --max-tokens": "256", "chat --repetition-penalty": "1", "chat --seed": "-1", "chat --temperature": "0.8",
	"compare --arch": "[transformer,diff,diff2]", "compare --dir": "runs/compare", "compare --eval-seed": "20",
	"compare --jobs": "1", "compare --keep": "last",
	"compare --seeds": "3", "compare --size": "[tiny]", "compare --tune-by": "loss", "compare --tune-seeds": "1",
	"convert --class": "auto", "convert --dtype": "float32", "convert --max-shard-size": "5GB",
	"convert --to":          "transformers",
	"data build --held-out": "0.02", "data build --held-out-by": "pieces", "data show --row": "-1",
	"data show --split": "train",
	"eval --batch":      "16", "eval --endpoint-concurrency": "8", "eval --endpoint-context": "4096",
	"eval --num-fewshot": "-1", "eval --scale": "paper", "eval --seed": "1",
	"export --class": "auto", "export --dtype": "float32", "export --max-shard-size": "5GB",
	"generate --max-tokens": "128", "generate --num-samples": "1", "generate --repetition-penalty": "1",
	"generate --seed": "-1", "generate --temperature": "0.8",
	"launch-info --join-timeout": "5m0s", "launch-info --local-rank": "-1", "launch-info --peer-timeout": "30s",
	"launch-info --rank":          "-1",
	"launch-info --stall-timeout": "10m0s", "launch-info --world-size": "-1", "scaling --by": "parameters",
	"scaling --seed":       "1",
	"serve --body-timeout": "30s", "serve --drain-timeout": "30s", "serve --header-timeout": "10s",
	"serve --idle-timeout": "1m0s", "serve --listen": "127.0.0.1:8080",
	"serve --max-attention-cells": "1048576", "serve --max-attention-entries": "67108864",
	"serve --max-attention-topk": "64", "serve --max-body": "8388608",
	"serve --max-connections": "1024", "serve --max-header": "65536", "serve --max-logit-bias": "1024",
	"serve --max-logprobs": "20", "serve --max-messages": "1024",
	"serve --max-n": "16", "serve --max-prompts": "64", "serve --max-queue": "256", "serve --max-schema-depth": "32",
	"serve --max-stop-bytes": "256",

	"serve --max-stops": "4", "serve --ping": "15s", "serve --request-timeout": "10m0s", "serve --schema-timeout": "1s",
	"serve --slots": "8", "serve --write-timeout": "10s",
	"speedrun --dir": "runs/speedrun", "speedrun --jobs": "1", "speedrun --minutes": "6", "speedrun --seed": "1",
	"tokenizer train --docs": "20000", "tokenizer train --pattern": "llama3", "tokenizer train --vocab": "8192",
	"train --arch": "diff", "train --bandwidth": "12.5", "train --join-timeout": "5m0s", "train --local-rank": "-1",
	"train --peer-timeout": "30s", "train --rank": "-1",
	"train --sample-tokens": "64", "train --size": "tiny", "train --stall-timeout": "10m0s", "train --world-size": "-1",
}

// short are the flags with a letter.
var short = map[string]string{"quiet": "q", "model": "m", "prompt": "p", "max-tokens": "n", "tasks": "t", "dir": "d",
	"out": "o", "output": "o"}

// A flag that is not given means what the table says, and nothing if it is not there; a letter means the same flag
// everywhere.
func TestDefaults(t *testing.T) {
	t.Setenv("ANTIPHASE_LAUNCHER", "")
	t.Setenv("ANTIPHASE_RENDEZVOUS", "")
	t.Setenv("ANTIPHASE_INTERFACE", "")
	flags := everyFlag()
	for _, name := range slices.Sorted(maps.Keys(flags)) {
		got := flags[name].DefValue
		want, listed := standing[name]
		if listed && got != want {
			t.Errorf("%s is %q by default, want %q", name, got, want)
		}
		if !listed && !slices.Contains([]string{"", "0", "false", "[]", "0s"}, got) {
			t.Errorf("%s is %q by default: not in the table", name, got)
		}
		if letter := flags[name].Shorthand; letter != "" && short[flags[name].Name] != letter {
			t.Errorf("%s has the letter %q", name, letter)
		}
	}
	for name := range standing {
		if flags[name] == nil {
			t.Errorf("there is no %s", name)
		}
	}
	for verb, letters := range map[string]string{"generate": "mpn", "chat": "mn", "eval": "mto", "train": "d",
		"compare": "d", "speedrun": "d", "serve": "m", "report": "o", "pack": "o"} {
		for _, letter := range letters {
			if !slices.ContainsFunc(slices.Collect(maps.Keys(flags)), func(name string) bool {
				return strings.HasPrefix(name, verb+" --") && flags[name].Shorthand == string(letter)
			}) {
				t.Errorf("%s has no -%c", verb, letter)
			}
		}
	}
}
