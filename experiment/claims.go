package experiment

// claim is a statement that rows can support or contradict: in measure, arch is below (or above) than.
type claim struct {
	text, source string
	arch, than   string
	measure      string  // of rows; empty if no experiment here measures it
	above        bool    // the claim is that arch has more of it
	border       float64 // the difference, or ratio, that arch must be below or above
	least        float64 // the published size of the effect: an interval that excludes it contradicts the claim
	published    string  // the published figure of arch and than, where least does not say it
	ratio        bool    // compared as a ratio, by seed
	within       float64 // the claim is that the ratio is at most this factor from 1, either way
	percent      bool
	unit         string
	why          string // why there is no measure
	command      string // measures it, if no experiment here does
	cell         string // the planned experiment that measures it, if not the first
}

// Claims name an architecture, or a variant as the study of V1 and the ablations name it.
const (
	plain    = "transformer"
	v1, v2   = "diff", "diff2"
	noNorm   = "diff-nonorm"
	flatter  = "diff-l02"
	flatFree = "diff-l02-nonorm"

	wide, wideNorm     = "transformer-wide", "transformer-wide-norm" // half the heads, twice as wide; a norm over each
	constant8          = "diff-l08"                                  // λ_init = 0.8 in every layer
	constant5          = "diff-l05"
	grouped, moreHeads = "diff2-grouped", "transformer-1.5h" // V2 with two heads a group, and a Transformer of its size
	across             = "diff2-across"
	noLambda           = "diff2-nolambda"
	linearLambda       = "diff2-linear"
)

// ablations is the experiment with the published variants.
const ablations = "ablations-mini"

// claims are those of the paper (Ye et al., arXiv 2410.05258v2), of DIFF V2's page (2026-01-20), and this project's own
// questions.
var claims = concat(paperClaims, beyondClaims, v2Claims, askedClaims)

func concat(lists ...[]claim) (out []claim) {
	for _, l := range lists {
		out = append(out, l...)
	}
	return out
}

var paperClaims = []claim{
	{text: "DIFF has a lower loss than a Transformer of equal size on equal tokens", source: "paper, Fig. 3, Table 6",
		arch: v1, than: plain, measure: "lm.loss", least: 0.025, unit: "nats"},
	{text: "DIFF has a lower loss on tokens that recall an earlier bigram (AR-Hit)", source: "paper, Table 6",
		arch: v1, than: plain, measure: "lm.ar_hit", least: 0.018, unit: "nats"},
	{text: "DIFF has a lower loss on other tokens", source: "paper, Table 6", arch: v1, than: plain,
		measure: "lm.others", least: 0.025, unit: "nats"},
	{text: "DIFF gives a single needle as often as the Transformer, within 5 points",
		source: "paper, Table 2 (N=1, R=1)", arch: v1, than: plain, measure: "needle.bound N=1 R=1", above: true,
		border: -0.05, percent: true,
		published: "100 against 100 %"},
	{text: "DIFF retrieves more of several needles", source: "paper, Table 2 (N=4, R=2)", arch: v1, than: plain,
		measure: "needle.bound N=4 R=2", above: true, percent: true, published: "84 against 62 %"},
	{text: "DIFF attends more to the answer", source: "paper, Table 3, Fig. 1", arch: v1, than: plain,
		measure: "attention.answer N=4 R=1", above: true, percent: true, published: "32 against 5 %"},
	{text: "DIFF attends less to noise", source: "paper, Table 3, Fig. 1", arch: v1, than: plain,
		measure: "attention.noise N=4 R=1", percent: true, published: "2 against 51 %"},
	{text: "DIFF has smaller outliers among attention logits", source: "paper, Table 5", arch: v1, than: plain,
		measure: "outliers.logits_max", published: "38.8 against 318.0"},
	{text: "DIFF has smaller outliers among hidden states", source: "paper, Table 5", arch: v1, than: plain,
		measure: "outliers.hidden_max", published: "1688.2 against 3608.6"},
	{text: "DIFF loses less when attention logits are rounded to 4 bits (KL to exact)", source: "paper, Fig. 8",
		arch: v1, than: plain, measure: "lowbit.kl logits@4", unit: "nats",
		published: "HellaSwag −7.4 against −29.5 points"},
	{text: "DIFF trains at 88 % or more of the Transformer's speed", source: "paper, Table 7", arch: v1, than: plain,
		measure: trainSpeed, ratio: true, above: true, border: 0.88, cell: "speed-160m", published: "88 to 94 %"},
	{text: "DIFF without the norm over heads has a higher loss than DIFF", source: "paper, Table 6", arch: noNorm,
		than: v1, measure: "lm.loss", above: true, least: 0.06, unit: "nats", cell: "v1-study"},
	{text: "DIFF with λ_init = 0.8 in every layer has a higher loss than DIFF", source: "paper, Table 6",
		arch: constant8, than: v1, measure: "lm.loss", above: true, least: 0.003, unit: "nats", cell: ablations},
	{text: "DIFF with λ_init = 0.5 in every layer has a higher loss than DIFF", source: "paper, Table 6",
		arch: constant5, than: v1, measure: "lm.loss", above: true, least: 0.004, unit: "nats", cell: ablations},
	{text: "Half the heads of twice the width do not help the Transformer, within 0.01 nats", source: "paper, Table 6",
		arch: wide, than: plain, measure: "lm.loss", above: true, border: -0.01, unit: "nats", cell: ablations,
		published: "+0.001 nats"},
	{text: "A norm over these heads does not help it either, within 0.01 nats", source: "paper, Table 6",
		arch: wideNorm, than: wide, measure: "lm.loss", above: true, border: -0.01, unit: "nats", cell: ablations,
		published: "−0.002 nats"},
	{text: "Gradients of DIFF are as large as the Transformer's, within a factor of 2 (late in training)",
		source: "paper, App. G", arch: v1, than: plain, measure: "train.grad_norm_late", ratio: true, within: 2},
}

// beyondClaims are those that no experiment of this size can test.
var beyondClaims = []claim{
	{text: "DIFF needs 62 % of the parameters for the same loss", source: "paper, Fig. 3a", why: "needs a fit over " +
		"four sizes or more, 830M to 13B there", command: "antiphase scaling RUN…"},
	{text: "DIFF needs 64 % of the tokens for the same loss", source: "paper, Fig. 3b", why: "needs runs of 160B " +
		"tokens and more", command: "antiphase scaling --by tokens RUN…"},
	{text: "DIFF-3B answers seven zero-shot tasks better than published 3B models", source: "paper, Table 1",
		why: "needs 1T tokens", command: "antiphase eval --preset table1 -m RUN…"},
	{text: "DIFF answers seven tasks better, zero-shot and with five examples", source: "paper, Table 8",
		why:     "models of this size and training answer them at chance",
		command: "antiphase eval --preset table8 -m RUN…"},
	{text: "DIFF has a lower loss at every position up to 64K", source: "paper, Fig. 4", why: "needs a context of " +
		"64K", command: "antiphase eval --preset figure4 -m RUN…"},
	{text: "DIFF retrieves one of eight needles better, 8K to 64K", source: "paper, Fig. 5", why: "needs a context " +
		"of 64K", command: "antiphase eval --preset figure5 -m RUN…"},
	{text: "DIFF learns better from many examples in its context", source: "paper, Fig. 6", why: "models of this " +
		"size and training answer at chance", command: "antiphase eval --preset figure6 -m RUN…"},
	{text: "DIFF depends less on the order of examples", source: "paper, Fig. 7 and 11", why: "models of this size " +
		"and training answer at chance", command: "antiphase eval --preset figure7 -m RUN…"},
	{text: "DIFF hallucinates less in summaries and answers", source: "paper, Table 4", why: "models of this size " +
		"and training write no summaries", command: "antiphase eval --preset table4 -m RUN…"},
	{text: "DIFF solves more problems of mathematics, and reasons in fewer tokens", source: "paper, Fig. 9 and 10",
		why: "needs 20B tokens of mathematics on a 3B model", command: "antiphase eval --preset figure10 -m RUN…"},
}

var v2Claims = []claim{
	{text: "DIFF V2 has a lower loss than a Transformer of equal size on equal tokens", source: "V2", arch: v2,
		than: plain, measure: "lm.loss", least: 0.02, unit: "nats"},
	{text: "DIFF V2 has smaller outliers among attention logits", source: "V2", arch: v2, than: plain,
		measure: "outliers.logits_max"},
	{text: "DIFF V2 has smaller outliers among hidden states", source: "V2", arch: v2, than: plain,
		measure: "outliers.hidden_max"},
	{text: "DIFF V2 has fewer spikes of loss and gradient", source: "V2", arch: v2, than: plain,
		measure: "train.spikes"},
	{text: "DIFF's gradient norm is larger late in training than DIFF V2's", source: "V2", arch: v1, than: v2,
		measure: "train.grad_norm_late", ratio: true, above: true, border: 1},
	{text: "DIFF V2 trains at 95 % or more of the Transformer's speed (“negligible” loss)", source: "V2", arch: v2,
		than: plain, measure: trainSpeed, ratio: true, above: true, border: 0.95, cell: "speed-160m"},
	{text: "DIFF V2 decodes as fast as the Transformer, DIFF more slowly", source: "V2", why: "a property of the " +
		"machine: docs/kernels.md has our figures", command: "antiphase bench decode --size 160m"},
	{text: "Attention outputs of DIFF V2 can be nearer to zero than a softmax's (no attention sinks)", source: "V2",
		arch: v2, than: plain, measure: "context_rms.least", cell: ablations},
	{text: "The norm over DIFF's heads magnifies a head with uniform attention to n tokens by √n (90 times at 8192)",
		source: "V2", why: "needs a context of 8192; ablations-mini has the largest magnification in one of 512",
		command: "antiphase eval --tasks context_rms -m RUN…"},
	{text: "DIFF V2 with pairs across groups has a higher loss than DIFF V2", source: "V2", arch: across, than: grouped,
		measure: "lm.loss", above: true, unit: "nats", cell: ablations},
	{text: "DIFF V2 with pairs across groups has more spikes of loss and gradient than DIFF V2", source: "V2",
		arch: across, than: grouped, measure: "train.spikes", above: true, cell: ablations},
	{text: "DIFF V2 without λ has a higher loss", source: "V2", arch: noLambda, than: grouped, measure: "lm.loss",
		above: true, unit: "nats", cell: ablations},
	{text: "DIFF V2 with λ without its sigmoid has a higher loss", source: "V2", arch: linearLambda, than: grouped,
		measure: "lm.loss", above: true, unit: "nats", cell: ablations},
	{text: "DIFF V2 with λ without its sigmoid has a lower loss than with pairs across groups", source: "V2",
		arch: linearLambda, than: across, measure: "lm.loss", unit: "nats", cell: ablations},
	{text: "A Transformer with 1.5 times the heads has a higher loss than DIFF V2", source: "V2", arch: moreHeads,
		than: grouped, measure: "lm.loss", above: true, unit: "nats", cell: ablations},
	{text: "DIFF V2 loses less when attention logits are rounded to 4 bits (KL to exact)", source: "V2", arch: v2,
		than: plain, measure: "lowbit.kl logits@4", unit: "nats"},
}

var askedClaims = []claim{
	{text: "DIFF learns to retrieve (90 %) from fewer tokens", source: "asked here", arch: v1, than: plain,
		measure: tokensTo90, ratio: true, border: 1},
	{text: "DIFF V2 has a lower loss than DIFF", source: "asked here", arch: v2, than: v1, measure: "lm.loss",
		unit: "nats"},
	{text: "DIFF V2 has a lower loss on tokens that recall an earlier bigram (AR-Hit)", source: "asked here",
		arch: v2, than: plain, measure: "lm.ar_hit", unit: "nats"},
	{text: "DIFF V2 gives a single needle as often as the Transformer, within 5 points", source: "asked here",
		arch: v2, than: plain, measure: "needle.bound N=1 R=1", above: true, border: -0.05, percent: true},
	{text: "DIFF V2 retrieves more of several needles", source: "asked here", arch: v2, than: plain,
		measure: "needle.bound N=4 R=2", above: true, percent: true},
	{text: "DIFF V2 learns to retrieve (90 %) from fewer tokens", source: "asked here", arch: v2, than: plain,
		measure: tokensTo90, ratio: true, border: 1},
	{text: "DIFF V2 attends more to the answer", source: "asked here", arch: v2, than: plain,
		measure: "attention.answer N=4 R=1", above: true, percent: true},
	{text: "DIFF V2 attends less to noise", source: "asked here", arch: v2, than: plain,
		measure: "attention.noise N=4 R=1", percent: true},
	{text: "DIFF with λ_init = 0.2 in every layer retrieves more of several needles than DIFF", source: "asked here",
		arch: flatter, than: v1, measure: "needle.bound N=4 R=2", above: true, percent: true, cell: "v1-study"},
	{text: "DIFF without the norm over heads retrieves more of several needles than DIFF", source: "asked here",
		arch: noNorm, than: v1, measure: "needle.bound N=4 R=2", above: true, percent: true, cell: "v1-study"},
	{text: "DIFF with both changes retrieves more of several needles than the Transformer", source: "asked here",
		arch: flatFree, than: plain, measure: "needle.bound N=4 R=2", above: true, percent: true, cell: "v1-study"},
}
