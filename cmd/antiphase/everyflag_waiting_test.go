package main

// waiting are the flags that nothing asserts yet. The list may only shrink: a new flag gets an entry.
var waiting = []string{
	"eval --endpoint-concurrency", "eval --endpoint-context", "eval --judge",
	"scaling --seed",
	"speedrun --data", "speedrun --dir", "speedrun --fresh", "speedrun --inexact", "speedrun --jobs",
	"speedrun --json", "speedrun --minutes", "speedrun --plan", "speedrun --seed", "speedrun --seeds",
}
