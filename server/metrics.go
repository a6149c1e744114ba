package server

import (
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"antiphase/infer"
)

// metrics are those that vLLM's dashboards use, with the same suffixes. Labels never contain what a client wrote.
type metrics struct {
	handler http.Handler

	requests  *prometheus.CounterVec
	rejected  *prometheus.CounterVec
	success   *prometheus.CounterVec
	cancelled prometheus.Counter
	prompt    *prometheus.CounterVec
	generated *prometheus.CounterVec

	queue, first, between, perToken, whole *prometheus.HistogramVec
}

const namespace = "antiphase"

func newMetrics(models *registry) *metrics {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: namespace, Name: name, Help: help}, labels)
	}
	seconds := func(name, help string, from float64) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{Namespace: namespace, Name: name, Help: help,
			Buckets: prometheus.ExponentialBuckets(from, 2, 18)}, []string{"model_name"})
	}
	m := &metrics{
		requests: counter("http_requests_total", "HTTP requests by route and status.", "route", "code"),
		rejected: counter("requests_rejected_total", "Requests refused before any work.", "reason"),
		success: counter("request_success_total", "Answers by the reason they ended.", "model_name",
			"finished_reason"),
		cancelled: prometheus.NewCounter(prometheus.CounterOpts{Namespace: namespace, Name: "requests_cancelled_total",
			Help: "Requests whose client left or did not read."}),
		prompt:    counter("prompt_tokens_total", "Tokens of admitted prompts.", "model_name"),
		generated: counter("generation_tokens_total", "Tokens generated.", "model_name"),
		queue:     seconds("request_queue_time_seconds", "Time from arrival to admission.", 1e-4),
		first:     seconds("time_to_first_token_seconds", "Time from arrival to the first generated token.", 1e-3),
		between:   seconds("inter_token_latency_seconds", "Time between two tokens of a choice.", 1e-4),
		perToken: seconds("request_time_per_output_token_seconds", "Mean time per token after the first, by request.",
			1e-4),
		whole: seconds("e2e_request_latency_seconds", "Time from arrival to the end.", 1e-3),
	}
	r := prometheus.NewRegistry()
	r.MustRegister(m.requests, m.rejected, m.success, m.cancelled, m.prompt, m.generated, m.queue, m.first, m.between,
		m.perToken, m.whole, load{models}, collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	m.handler = promhttp.HandlerFor(r, promhttp.HandlerOpts{})
	return m
}

func (m *metrics) serve(w http.ResponseWriter, r *http.Request) { m.handler.ServeHTTP(w, r) }

func (m *metrics) request(route string, status int) {
	m.requests.WithLabelValues(route, strconv.Itoa(status)).Inc()
}

// load reads the engines' state on demand.
type load struct{ models *registry }

var (
	descRunning = prometheus.NewDesc(namespace+"_num_requests_running", "Sequences in the batch.",
		[]string{"model_name"}, nil)
	descWaiting = prometheus.NewDesc(namespace+"_num_requests_waiting", "Requests and sequences that wait.",
		[]string{"model_name"}, nil)
	descCache = prometheus.NewDesc(namespace+"_kv_cache_usage_perc", "Share of the KV pages in use, 0 to 1.",
		[]string{"model_name"}, nil)
	descHits = prometheus.NewDesc(namespace+"_prefix_cache_hits_total", "Prompt tokens found in the cache.",
		[]string{"model_name"}, nil)
	descPreempt = prometheus.NewDesc(namespace+"_num_preemptions_total",
		"Times a sequence lost its pages to an older one.", []string{"model_name"}, nil)
)

// Describe implements prometheus.Collector.
func (load) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{descRunning, descWaiting, descCache, descHits, descPreempt} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (l load) Collect(ch chan<- prometheus.Metric) {
	for _, m := range l.models.list() {
		st := m.Engine.Stats()
		waiting, _ := m.gate.load()
		used := float64(st.Pages-st.FreePages) / float64(max(1, st.Pages))
		ch <- prometheus.MustNewConstMetric(descRunning, prometheus.GaugeValue, float64(st.Running), m.ID)
		ch <- prometheus.MustNewConstMetric(descWaiting, prometheus.GaugeValue, float64(waiting+st.Waiting), m.ID)
		ch <- prometheus.MustNewConstMetric(descCache, prometheus.GaugeValue, used, m.ID)
		ch <- prometheus.MustNewConstMetric(descHits, prometheus.CounterValue, float64(st.Hits), m.ID)
		ch <- prometheus.MustNewConstMetric(descPreempt, prometheus.CounterValue, float64(st.Preempted), m.ID)
	}
}

// watch times one call.
type watch struct {
	m      *metrics
	name   string
	prompt int
	begin  time.Time
	first  time.Time
	last   map[int]time.Time // by choice
	tokens int
}

func (m *metrics) watch(model *Model, prompt int) *watch {
	return &watch{m: m, name: model.ID, prompt: prompt, begin: time.Now(), last: map[int]time.Time{}}
}

func (w *watch) admitted() {
	w.m.queue.WithLabelValues(w.name).Observe(time.Since(w.begin).Seconds())
	w.m.prompt.WithLabelValues(w.name).Add(float64(w.prompt))
}

func (w *watch) event(i int, ev infer.Event) {
	if ev.ID < 0 || ev.Prompt {
		return
	}
	now := time.Now()
	if w.tokens++; w.tokens == 1 {
		w.first = now
		w.m.first.WithLabelValues(w.name).Observe(now.Sub(w.begin).Seconds())
	}
	if last, ok := w.last[i]; ok {
		w.m.between.WithLabelValues(w.name).Observe(now.Sub(last).Seconds())
	}
	w.last[i] = now
}

func (w *watch) finished(list []*choice, err error) {
	w.m.generated.WithLabelValues(w.name).Add(float64(w.tokens))
	if err != nil {
		return
	}
	w.m.whole.WithLabelValues(w.name).Observe(time.Since(w.begin).Seconds())
	if n := w.tokens - len(w.last); n > 0 {
		w.m.perToken.WithLabelValues(w.name).Observe(time.Since(w.first).Seconds() * float64(len(w.last)) / float64(n))
	}
	for _, c := range list {
		w.m.success.WithLabelValues(w.name, c.reason).Inc()
	}
}
