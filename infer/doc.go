// Package infer turns a model into text: sequences, KV pages, a batching engine, a sampler and streamed output.
//
// The flow: [Engine.Generate] checks requests and queues them as sequences; each step (step.go) admits what fits,
// plans one row per decoding sequence and a bounded number of prompt rows (schedule.go), runs them through
// model.Run in one batch and takes a token for every sequence whose last known token was among them: the likeliest, found on
// the device, or a sampled one (sampler.go, selection.go). The caller's own goroutine then turns its tokens into events (output.go): text in whole
// characters, with stop strings held back (stop.go). A [Session] keeps its pages between turns.
//
// Where the device works behind the host, a step of greedy decoding is started before the tokens of the last one are seen (ahead.go).
//
// A [Shared] scorer runs many sequences with common prefixes (multiple choice, many-shot prompts) and computes each prefix once.
//
// There is no background goroutine. Whoever waits for tokens runs the next step for everybody, so that concurrent
// calls share batches, a slow reader holds up only itself, and nothing is left behind when the last call returns.
//
// Results do not depend on company: devices compute each row independently of the others, every sequence draws
// from its own random stream, and a sequence that lost its pages to another is recomputed to the same bits. On a device that
// takes the rows of a prompt together (device.Chunker) the last bits do depend on how prompts were cut into steps.
package infer
