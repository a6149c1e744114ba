package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"antiphase/device"
	"antiphase/hf"
	"antiphase/infer"
	"antiphase/internal/fault"
	"antiphase/server"
	"antiphase/tokenizer/chat"
	"antiphase/web"
)

type serveFlags struct {
	models   []string
	listen   string
	keyFile  string
	template string
	runs     string
	insecure bool
	logJSON  bool
	hosts    []string
	origins  []string
	options  infer.Options
	limits   server.Limits
	jinja    string // what --chat-template names
}

func serveVerb(a *app) *cobra.Command {
	var f serveFlags
	c := &cobra.Command{
		Use:   "serve",
		Short: "Serve models over OpenAI's HTTP API",
		Long: `Serve provides OpenAI's HTTP API for one or more models, with a batching engine, a bounded queue and
Prometheus metrics, and a web page with chat, attention lab and training curves. Without --model it serves the
embedded models.

It listens on loopback by default and refuses any other address without API keys: one per line in
--api-key-file, or separated by commas in ANTIPHASE_API_KEY. SIGTERM drains: requests in flight finish, new
ones get 503.

Under mpirun or srun each rank holds a part of every matrix; rank 0 listens.`,
		Example: `  antiphase serve --model runs/small-diff
  antiphase serve --model diff=runs/small-diff --model base=runs/small-transformer --listen 127.0.0.1:9000
  ANTIPHASE_API_KEY=$(cat key) antiphase serve --model folder --listen 0.0.0.0:8080`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkLimits(cmd.LocalNonPersistentFlags()); err != nil {
				return usage(err)
			}
			return a.inParts(cmd.Context(), f.folders, func() error { return a.serve(cmd.Context(), &f) })
		},
	}
	fl := c.Flags()
	fl.StringArrayVarP(&f.models, "model", "m", nil, "[NAME=]FOLDER: "+modelWords+
		" (repeatable; the first is the default)")
	fl.StringVar(&f.listen, "listen", "127.0.0.1:8080", "address and port")
	fl.StringVar(&f.keyFile, "api-key-file", "", "file with one API key per line")
	fl.StringVar(&f.runs, "runs", "", "folder of runs whose training curves the page shows")
	fl.BoolVar(&f.insecure, "insecure", false, "allow a non-loopback address without API keys")
	fl.StringVar(&f.template, "chat-template", "",
		"Jinja file that replaces the models' templates, or plain: one message per line, for base models")
	fl.StringSliceVar(&f.hosts, "allow-host", nil,
		"additional names for the Host header; on loopback only local names are allowed")
	fl.StringSliceVar(&f.origins, "allow-origin", nil,
		"web origins that may call, besides its own, such as https://app.example")
	fl.BoolVar(&f.logJSON, "log-json", false, "log requests as JSON")
	f.limitFlags(c)
	return c
}

// errNoModel is the error without --model if there are no embedded models.
var errNoModel = errors.New("--model: missing; name a " + modelWords + " (repeatable, [NAME=]FOLDER)")

// complete adds the embedded models if none were named.
func (f *serveFlags) complete() {
	if len(f.models) == 0 {
		f.models = embeddedModels()
	}
}

// folders are those of the models, in order.
func (f *serveFlags) folders() (out []string) {
	f.complete()
	for _, spec := range f.models {
		_, dir := servedName(spec)
		out = append(out, dir)
	}
	return out
}

func (a *app) serve(ctx context.Context, f *serveFlags) error {
	if f.complete(); len(f.models) == 0 {
		return usage(errNoModel)
	}
	keys, err := f.keys()
	if err != nil {
		return err
	}
	loopback, err := f.checkListen(keys)
	if err != nil {
		return err
	}
	cfg := server.Config{Limits: f.limits, Keys: keys, Origins: f.origins, Version: version(), Commit: built().Commit,
		Log: a.requestLog(f), Page: web.Handler()}
	if f.runs != "" {
		if cfg.Runs, err = os.OpenRoot(f.runs); err != nil {
			return badInput{fmt.Errorf("--runs: %w", err)}
		}
		defer cfg.Runs.Close()
	}
	if loopback || len(f.hosts) > 0 {
		cfg.Hosts = append([]string{"localhost", "127.0.0.1", "::1"}, f.hosts...)
	}
	s, err := server.New(cfg)
	if err != nil {
		return usage(err)
	}
	l, err := listen(f.listen)
	if err != nil {
		return err
	}
	// The port is open while models load, so that probes get 503 rather than no connection.
	stop, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan error, 1)
	go func() {
		defer fault.Guard()()
		done <- s.Serve(stop, l)
	}()
	models, closeAll, err := a.serveModels(ctx, f)
	if err == nil {
		if err = s.Ready(models...); err != nil {
			err = usage(fmt.Errorf("--model: %w", err))
		}
	}
	if err != nil {
		cancel()
		<-done
		closeAll()
		return err
	}
	a.announce(l.Addr().String(), models, keys != nil, f.keyFile)
	err = <-done
	closeAll()
	return err
}

// listen opens the port; an invalid address is a usage error.
func listen(address string) (net.Listener, error) {
	l, err := net.Listen("tcp", address)
	if errors.As(err, new(*net.AddrError)) {
		return nil, usage(fmt.Errorf("--listen: %w", err))
	}
	return l, err
}

// keys are those of the file and of the environment.
func (f *serveFlags) keys() (*server.Keys, error) {
	text := os.Getenv("ANTIPHASE_API_KEY")
	if text != "" && strings.Trim(text, ", \t\n") == "" {
		return nil, usage(fmt.Errorf("ANTIPHASE_API_KEY: is %q, which has no key; give one, or unset it", text))
	}
	list := strings.Split(text, ",")
	if f.keyFile != "" {
		r, err := os.Open(f.keyFile)
		if err != nil {
			return nil, badInput{fmt.Errorf("--api-key-file: %w", err)}
		}
		defer r.Close()
		more, err := server.ReadKeys(r)
		if err != nil {
			return nil, badInput{fmt.Errorf("--api-key-file: %s: %w", f.keyFile, err)}
		}
		list = append(list, more...)
	}
	k, err := server.NewKeys(list...)
	if err != nil {
		return nil, usage(err)
	}
	return k, nil
}

// checkListen rejects a non-loopback address without keys.
func (f *serveFlags) checkListen(keys *server.Keys) (loopback bool, err error) {
	host, _, err := net.SplitHostPort(f.listen)
	if err != nil {
		return false, usage(fmt.Errorf("--listen: %q is not an address and a port, such as 127.0.0.1:8080", f.listen))
	}
	ip := net.ParseIP(host)
	loopback = host == "localhost" || ip != nil && ip.IsLoopback()
	if !loopback && keys == nil && !f.insecure {
		return false, usage(fmt.Errorf("--listen: %s can be reached from other machines, and there is no API key; "+
			"give --api-key-file or ANTIPHASE_API_KEY, or pass --insecure", f.listen))
	}
	return loopback, nil
}

func (a *app) requestLog(f *serveFlags) *slog.Logger {
	switch {
	case f.logJSON:
		return slog.New(slog.NewJSONHandler(a.err, nil))
	case a.quiet:
		return slog.New(slog.NewTextHandler(a.err, &slog.HandlerOptions{Level: slog.LevelWarn}))
	}
	return slog.New(slog.NewTextHandler(a.err, nil))
}

// serveModels opens the device and every model on it. The returned function closes them.
func (a *app) serveModels(ctx context.Context, f *serveFlags) (list []*server.Model, done func(), err error) {
	done = func() {
		for _, m := range list {
			m.Close()
		}
	}
	if err := f.readTemplate(); err != nil {
		return nil, done, err
	}
	d, shut, err := a.openModels()
	if err != nil {
		return nil, done, err
	}
	free := done
	done = func() { free(); shut() }
	f.options.Lock = &sync.Mutex{}
	for _, spec := range f.models {
		if ctx.Err() != nil {
			return list, done, ctx.Err()
		}
		m, err := a.serveModel(d, f, spec)
		if err != nil {
			return list, done, err
		}
		list = append(list, m)
	}
	return list, done, nil
}

// readTemplate reads --chat-template.
func (f *serveFlags) readTemplate() (err error) {
	switch f.template {
	case "":
	case "plain":
		f.jinja = plainTemplate
	default:
		f.jinja, err = templateFile(f.template)
	}
	return err
}

// plainTemplate writes one message per line, for models without a conversation format.
const plainTemplate = `{% for m in messages %}{{ m.content }}{% if not loop.last %}{{ '\n' }}{% endif %}{% endfor %}`

// servedName splits [NAME=]FOLDER; a folder without a name is called by its last part, a model of the cache by
// org/name.
func servedName(spec string) (name, dir string) {
	if name, dir, named := strings.Cut(spec, "="); named {
		return name, dir
	}
	if _, err := os.Stat(spec); err != nil && hf.IsHubName(spec) {
		return spec, spec
	}
	return filepath.Base(filepath.Clean(spec)), spec
}

// serveModel loads one [NAME=]FOLDER.
func (a *app) serveModel(d device.Device, f *serveFlags, spec string) (*server.Model, error) {
	name, dir := servedName(spec)
	if err := server.CheckID(name); err != nil {
		return nil, usage(fmt.Errorf("--model: %w; NAME=FOLDER gives another", err))
	}
	begin := time.Now()
	l, err := a.load(d, dir)
	if err == nil && l.Tokenizer == nil {
		err = badInput{fmt.Errorf("%s has no tokenizer.json, so text cannot be made", dir)}
	}
	if err != nil {
		return nil, err
	}
	var template *chat.Template
	if f.template == "" {
		template, err = chatTemplate(l)
	} else {
		template, err = chat.Parse(f.jinja, l.specialTexts())
	}
	if err != nil {
		return nil, badInput{err}
	}
	src := server.Source{ID: name, Model: l.Model, Tokenizer: l.Tokenizer, Template: template,
		First: l.Manners.First, EOS: l.EOS, Defaults: servedDefaults(l.Manners.Generation), Created: time.Now(),
		Options: f.options, Print: fingerprint(d, l)}
	m, err := server.NewModel(src)
	if errors.As(err, new(*infer.FieldError)) {
		return nil, usage(err)
	} else if err != nil { // a model whose output is not finite
		return nil, badInput{fmt.Errorf("%s: %w", dir, err)}
	}
	a.note("%s: %s parameters, context %d, %d slots, loaded in %s", name, count(float64(m.Params)), m.Context, m.Slots,
		seconds(time.Since(begin).Seconds()))
	return m, nil
}

// servedDefaults are a folder's sampling defaults; OpenAI's temperature of 1 if it has none.
func servedDefaults(g *hf.Generation) *infer.Sampling {
	s := &infer.Sampling{Temperature: 1}
	if g == nil {
		return s
	}
	set(&s.Temperature, g.Temperature)
	if g.Sample != nil && !*g.Sample {
		s.Temperature = 0
	}
	set(&s.TopK, g.TopK)
	set(&s.TopP, g.TopP)
	set(&s.MinP, g.MinP)
	set(&s.RepetitionPenalty, g.RepetitionPenalty)
	return s
}

func set[T any](dst *T, v *T) {
	if v != nil {
		*dst = *v
	}
}

// fingerprint changes with anything that may change an answer: program version, device, model.
func fingerprint(d device.Device, l *loaded) string {
	h := fnv.New64a()
	config, err := json.Marshal(l.Model.Config) // what it points to, not where
	if err != nil {
		panic(err) // only numbers, strings and lists: a non-finite number is refused by Complete
	}
	fmt.Fprint(h, version(), d.Name(), l.Dir, l.Step, string(config))
	return fmt.Sprintf("fp_%x", h.Sum64())
}
