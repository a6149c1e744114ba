package experiment

import (
	"strings"
	"unicode/utf8"
)

// columns is the width of the document's prose; tables and code are as wide as they are.
const columns = 120

// prose breaks text at spaces into lines of the document's width. The first line begins with lead, the others with as
// many spaces.
func prose(lead, text string) string {
	var b strings.Builder
	b.WriteString(lead)
	indent := utf8.RuneCountInString(lead)
	at := indent
	for i, word := range strings.Fields(text) {
		n := utf8.RuneCountInString(word)
		switch {
		case i == 0:
			at += n
		case at+1+n > columns:
			b.WriteString("\n" + strings.Repeat(" ", indent))
			at = indent + n
		default:
			b.WriteByte(' ')
			at += 1 + n
		}
		b.WriteString(word)
	}
	b.WriteByte('\n')
	return b.String()
}

const evidenceHead = `# Evidence

Does differential attention work? This page tests the claims of the Differential Transformer (DIFF; Ye et al., arXiv
2410.05258v2) and of its second version (DIFF V2, 2026-01-20) by training models of equal size on the same batches. It
is rendered from the rows in [results/evidence](../results/evidence) by
` + "`antiphase evidence results/evidence -o docs/evidence.md`" + `; every measured number on it is computed from a committed
row. The tables below give the answer; what follows them says how claims are judged, what the terms mean, and every
figure with its interval.

`

const evidenceRules = `How a claim is judged:

- Architectures have equal parameters (to 1 %) and equal tokens, see the same batches in the same order for a seed, and
  are tuned over the same learning rates. The rate of each is the one with the best held-out loss, or the best score
  that the experiment names. Where all rates score at a floor, held-out loss decides, or chance where the tuning grid
  says so. The seeds used for tuning also count in the comparison, for every architecture.
- Differences have 95 % intervals. A loss or score is a mean over items (documents, questions or sequences), and its
  interval is over seeds and items (crossed random effects). Both sides have the same items, which are paired. Their
  seeds are not paired: they count as independent, and the variance between seeds is estimated on each side. For a seed
  both sides see the same batches and begin with the same weights wherever parameters have the same name and shape;
  where that makes them vary alike, the interval is wider than it has to be. A hierarchical bootstrap is not used: with
  few seeds its intervals are too narrow. The intervals used here contained the true difference in 95.7 % of 2,000
  simulated experiments with 5 independent seeds and 60 items (` + "`go test ./experiment -run Coverage -v`" + `). One seed
  gives no interval.
- Gradient norm, spikes and speed have no items: each run is compared with the other side's run of the same seed, and
  the interval is Student's. A ratio is the geometric mean over seeds, and so are the two figures before it.
- Intervals of verdicts are not corrected for the number of claims: one in twenty is expected to miss the truth. The
  stars in the experiments' tables are corrected for the number of comparisons in the experiment (Holm; the first
  measure of every task is one family, the others are another), so that there are verdicts without a star. With one seed
  stars and errors are over items alone: they say nothing about another seed.
- Whether a side *learns to retrieve from fewer tokens* is judged without an interval, by the exact two-sided rank sum
  test of the tokens to 90 % of all its runs against those of the other side; runs that never get there or diverged rank
  last. With p < 0.05 the claim holds or does not hold, according to the side with the lower ranks.
- Retrieval counts a number only if it is given for its own key. Its floors are chance and the score of naming any of
  the hidden numbers; a score that is not above its floors proves nothing.
- A claim *holds* in an experiment when the whole interval is on the claim's side. It *does not hold* when the whole
  interval is on the other side, or, for losses, when the interval excludes an effect as large as the published one. It
  *cannot be told here* otherwise; also with fewer than three seeds, with unequal tuning or parameters, when the side
  that is said to retrieve more is at its floor, when the side that was found better had runs that diverged, and when no
  experiment of this size can measure it. The reason is given with it. *Not run* means that an experiment is planned and
  no row measures the claim yet.
- The published figure is given with the source. It enters the verdict only for losses and where the claim itself names
  a number; the other published figures are from models of 3B parameters, with other prompts, texts and statistics. A
  claim that holds here may have a much smaller effect than published.
- The models here are small and their training is short. A verdict holds for the sizes and tokens given with it.
- The experiments named “text” and the ablations train on books, science and other text; those named “retrieval” and
  v1-study on synthetic text made of needles, lists of keys and values, and prose, so that their losses are of that text.
`
