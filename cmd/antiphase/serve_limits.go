package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"antiphase/server"
)

// limitFlags makes every limit of the server a flag.
func (f *serveFlags) limitFlags(c *cobra.Command) {
	fl, o := c.Flags(), &f.options
	f.limits = server.DefaultLimits()
	l := &f.limits
	fl.IntVar(&o.Slots, "slots", 8, "maximum sequences per batch")
	fl.IntVar(&o.CacheTokens, "cache-tokens", 0, "size of the KV cache in tokens; 0 is slots × context")
	fl.IntVar(&o.PrefillChunk, "prefill-chunk", 0, "prompt tokens per step; 0 is the device's preference")
	fl.IntVar(&l.Queue, "max-queue", l.Queue, "maximum requests waiting for one model; more get 429")
	fl.IntVar(&l.QueueTokens, "max-queue-tokens", l.QueueTokens,
		"maximum prompt tokens waiting for one model; 0 is 4 × context × slots")
	fl.DurationVar(&l.Wait, "max-wait", l.Wait, "maximum expected waiting time; requests that would wait longer get "+
		"429; 0 is half the time that requests take, at least 0.5 s")
	fl.IntVar(&l.MaxTokens, "max-tokens", l.MaxTokens, "default length of an answer in tokens; 0 fills the context")
	fl.IntVar(&l.RequestTokens, "max-request-tokens", l.RequestTokens,
		"maximum tokens of all answers of one request, including echoed prompts; 0 is 64 contexts, at most 262144")
	fl.IntVar(&l.Choices, "max-n", l.Choices, "maximum choices per prompt")
	fl.IntVar(&l.Prompts, "max-prompts", l.Prompts, "maximum prompts per request")
	fl.IntVar(&l.Messages, "max-messages", l.Messages, "maximum messages per chat request")
	fl.IntVar(&l.Stops, "max-stops", l.Stops, "maximum stop strings per request")
	fl.IntVar(&l.StopBytes, "max-stop-bytes", l.StopBytes, "maximum bytes of one stop string")
	fl.IntVar(&l.Logprobs, "max-logprobs", l.Logprobs, "maximum top_logprobs per token")
	fl.IntVar(&l.Biases, "max-logit-bias", l.Biases, "maximum entries of logit_bias")
	fl.IntVar(&l.Cells, "max-attention-cells", l.Cells, "maximum numbers in one /v1/attention response")
	fl.IntVar(&l.Entries, "max-attention-entries", l.Entries, "maximum attention-map entries computed for one response")
	fl.IntVar(&l.Tops, "max-attention-topk", l.Tops, "maximum next tokens listed per position")
	fl.Int64Var(&l.Body, "max-body", l.Body, "maximum request body in bytes")
	fl.IntVar(&l.Header, "max-header", l.Header, "maximum request header in bytes")
	fl.IntVar(&l.Connections, "max-connections", l.Connections, "maximum open connections")
	fl.IntVar(&l.SchemaDepth, "max-schema-depth", l.SchemaDepth, "maximum nesting of a JSON schema")
	fl.DurationVar(&l.Compile, "schema-timeout", l.Compile, "maximum time to compile a JSON schema")
	fl.DurationVar(&l.Request, "request-timeout", l.Request, "maximum wall-clock time of one request")
	fl.DurationVar(&l.HeaderTimeout, "header-timeout", l.HeaderTimeout, "maximum time to read a request's header")
	fl.DurationVar(&l.BodyTimeout, "body-timeout", l.BodyTimeout, "maximum time to read a request's body")
	fl.DurationVar(&l.WriteTimeout, "write-timeout", l.WriteTimeout, "maximum time of one write to a slow client")
	fl.DurationVar(&l.IdleTimeout, "idle-timeout", l.IdleTimeout, "time after which an idle connection is closed")
	fl.DurationVar(&l.Ping, "ping", l.Ping, "idle time on a stream after which a keep-alive comment is sent")
	fl.DurationVar(&l.Drain, "drain-timeout", l.Drain, "time that requests in flight have to finish at shutdown")
}

// checkLimits rejects limits below zero, and zero unless it is the default: the server would replace it by the default.
func checkLimits(fl *pflag.FlagSet) (err error) {
	fl.VisitAll(func(x *pflag.Flag) {
		if err != nil || !slices.Contains([]string{"int", "int64", "duration"}, x.Value.Type()) {
			return
		}
		zero := func(s string) bool { return s == "0" || s == "0s" }
		switch v := x.Value.String(); {
		case zero(x.DefValue) && strings.HasPrefix(v, "-"):
			err = fmt.Errorf("--%s: is %s, must not be negative", x.Name, v)
		case !zero(x.DefValue) && (zero(v) || strings.HasPrefix(v, "-")):
			err = fmt.Errorf("--%s: is %s, must be positive", x.Name, v)
		}
	})
	return err
}
