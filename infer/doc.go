// Package infer generates text with a model: sequences, KV pages, a batching engine, a sampler and streamed output.
//
// [Engine.Generate] checks requests and queues them as sequences. In each step (step.go) the scheduler admits what fits
// (schedule.go) into the pages of the store (store.go, pages.go, prefix.go); the pass plans one row per decoding
// sequence and a bounded number of prompt rows (plan.go) and runs them through the model in one batch (pass.go). Every
// sequence whose last known token was in the batch gets a token: the most likely one, found on the device, or a sampled
// one (sampler.go, selection.go). The caller's own goroutine then turns its tokens into events (output.go): text in
// whole characters, with possible stop strings held back (stop.go). A [Session] keeps its pages between turns.
//
// On an asynchronous device a step of greedy decoding is started before the tokens of the last one are seen (ahead.go).
//
// A [Shared] scorer runs many sequences with common prefixes (multiple choice, many-shot prompts) and computes each
// prefix once.
//
// There is no background goroutine. A caller that waits for tokens runs the next step for all, so concurrent calls
// share batches, a slow reader delays only itself, and nothing keeps running when the last call returns.
//
// Results do not depend on the other sequences: devices compute each row independently of the others, every sequence
// draws from its own random stream, and a preempted sequence is recomputed to the same bits. On a device that computes
// the rows of a prompt together (device.Chunker) the last bits do depend on how prompts were split into steps.
package infer
