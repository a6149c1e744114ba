package task

import "strconv"

// Presets are the published tables and figures, in order: those of the paper, then those of DIFF V2's page.
func Presets() []Preset {
	return append(paperPresets(), pagePresets()...)
}

// mcSeven are the paper's seven tasks.
const mcSeven = "arc_challenge,arc_easy,boolq,hellaswag,openbookqa,piqa,winogrande"

// whole is a setting for the context of the given models.
func whole(set map[string]string) func(int) map[string]string {
	return func(int) map[string]string { return set }
}

// needles is a cell of Table 2.
func needles(n, r string) PresetPart {
	return PresetPart{Tasks: "needle",
		Set: map[string]string{"needles": n, "queries": r, "lengths": "4096", "samples": "50", "wording": "public"},
		Fit: whole(map[string]string{"lengths": "0", "samples": "20", "wording": "own"})}
}

// eighths are the lengths of Figure 5, in eighths of the context; short ones have no room for the needles.
func eighths(context int) map[string]string {
	list := ""
	for k := 5; k <= 8; k++ {
		if list != "" {
			list += ","
		}
		list += strconv.Itoa(context * k / 8)
	}
	return map[string]string{"lengths": list, "samples": "10", "needles": "4", "wording": "own"}
}

// attentionPart is the attention of the answer's token at 4K.
func attentionPart() PresetPart {
	return PresetPart{Tasks: "attention",
		Set: map[string]string{"lengths": "4096", "samples": "50", "wording": "public"},
		Fit: whole(map[string]string{"lengths": "0", "samples": "10", "wording": "own"})}
}

func paperPresets() []Preset {
	zero, five := 1, 6 // see PresetPart.Shots
	return []Preset{
		{Name: "table1", Doc: "zero-shot accuracy on seven tasks, beside published 3B models",
			Parts: []PresetPart{{Tasks: mcSeven, Shots: zero}}},
		{Name: "table2", Doc: "retrieval of needles at 4K for four pairs of N and R",
			Parts: []PresetPart{needles("1", "1"), needles("2", "2"), needles("4", "2"), needles("6", "2")}},
		{Name: "table3", Doc: "attention to the answer and noise by depth", Parts: []PresetPart{attentionPart()}},
		{Name: "table4", Doc: "contextual hallucination; XSum, CNN/DM and MultiNews are not among the sets, eLife " +
			"stands for summaries; with --judge as published",
			Parts: []PresetPart{{Tasks: "hallucination", Set: map[string]string{"items": "100"}}}},
		{Name: "table5", Doc: "largest attention logits and hidden states over 400,000 tokens",
			Parts: []PresetPart{{Tasks: "outliers", Set: map[string]string{"tokens": "400000"},
				Fit: whole(map[string]string{"tokens": "16384"})}}},
		{Name: "table6", Doc: "ablations of DIFF", Command: "antiphase ablation --size 1.4b --data … (or --size tiny)"},
		{Name: "table7", Doc: "training and inference throughput at 2K and 4K",
			Parts: []PresetPart{{Tasks: "throughput", Set: map[string]string{"lengths": "2048,4096"},
				Fit: func(context int) map[string]string {
					return map[string]string{"lengths": strconv.Itoa(max(context/2, 1)) + "," + strconv.Itoa(context)}
				}}}},
		{Name: "table8", Doc: "zero-shot and five-shot accuracy on seven tasks",
			Parts: []PresetPart{{Tasks: mcSeven, Shots: zero}, {Tasks: mcSeven, Shots: five}}},
		{Name: "figure1", Doc: "where the answer's token looks, and retrieval with N = 6, R = 2",
			Parts: []PresetPart{attentionPart(), needles("6", "2")}},
		{Name: "figure3", Doc: "scaling of size and of training tokens",
			Command: "antiphase scaling RUN... [--by tokens --at tokens=160B]"},
		{Name: "figure4", Doc: "cumulative loss by position up to 64K",
			Parts: []PresetPart{{Tasks: "lm", Set: map[string]string{"length": "65536"},
				Fit: whole(map[string]string{"length": "0"})}}},
		{Name: "figure5", Doc: "retrieval of one of eight needles by depth, 8K to 64K",
			Parts: []PresetPart{{Tasks: "needle", Set: map[string]string{"needles": "8", "queries": "1",
				"lengths": "8192,16384,24576,32768,40960,49152,57344,65536", "samples": "50", "wording": "public"},
				Fit: eighths}}},
		{Name: "figure6", Doc: "many-shot in-context learning on four sets",
			Parts: []PresetPart{{Tasks: "icl", Set: map[string]string{"items": "100"},
				Fit: whole(map[string]string{"items": "20"})}}},
		{Name: "figure7", Doc: "robustness of TREC to the order of examples, random and alternating",
			Parts: []PresetPart{orderPart("icl_order_trec")}},
		{Name: "figure8", Doc: "HellaSwag with attention logits of 8, 6 and 4 bits",
			Parts: []PresetPart{{Tasks: "lowbit",
				Set: map[string]string{"task": "hellaswag", "of": "logits", "bits": "8,6,4", "samples": "10042",
					"texts": "0"}, Fit: whole(map[string]string{"samples": "40"})}}},
		{Name: "figure9",
			Doc:         "mean accuracy of eight sets of mathematics by training tokens, from the checkpoints of a run",
			Checkpoints: true,
			Parts: []PresetPart{{Tasks: "math", Set: map[string]string{"max_tokens": "1024"},
				Fit: whole(map[string]string{"max_tokens": "64"})}}},
		{Name: "figure10",
			Doc: "accuracy on eight sets of mathematics after training on reasoning, up to 16K tokens of it",
			Parts: []PresetPart{{Tasks: "math", Set: map[string]string{"max_tokens": "16384"},
				Fit: whole(map[string]string{"max_tokens": "64"})}}},
		{Name: "figure11", Doc: "robustness to the order of examples, the other three sets",
			Parts: []PresetPart{orderPart("icl_order_trec_fine,icl_order_banking77,icl_order_clinc150")}},
		{Name: "appendix_g", Doc: "gradient norms by kind of parameter, by probe; while training they are in " +
			"metrics.jsonl, which report draws", Parts: []PresetPart{{Tasks: "gradients"}}},
	}
}

// orderPart is the spread over orders.
func orderPart(tasks string) PresetPart {
	return PresetPart{Tasks: tasks, Set: map[string]string{"items": "100", "seeds": "30"},
		Fit: whole(map[string]string{"items": "20", "seeds": "5"})}
}

func pagePresets() []Preset {
	return []Preset{
		{Name: "v2_loss", Doc: "held-out loss of DIFF V2 beside its baselines", Parts: []PresetPart{{Tasks: "lm"}}},
		{Name: "v2_context", Doc: "RMS of attention outputs by layer and length",
			Parts: []PresetPart{{Tasks: "context_rms"}}},
		{Name: "v2_outliers", Doc: "largest attention logits and hidden states",
			Parts: []PresetPart{{Tasks: "outliers", Fit: whole(map[string]string{"tokens": "4096"})}}},
		{Name: "v2_lowbit", Doc: "logits, keys and values of few bits, with the divergence from exact",
			Parts: []PresetPart{{Tasks: "lowbit",
				Set: map[string]string{"task": "lm", "with": "pieces=40", "of": "logits,keys,values,both",
					"per": "tensor,head,row"},
				Fit: whole(map[string]string{"bits": "6,4", "with": "pieces=8;length=128"})}}},
		{Name: "v2_stability", Doc: "gradient norm and loss spikes over training",
			Command: "antiphase report RUN... (from their metrics.jsonl)"},
		{Name: "v2_ablations", Doc: "ablations of DIFF V2 and the baseline of 1.5 times the heads",
			Command: "antiphase ablation --arch diff2 --size 1.4b --data … (or --size tiny)"},
		{Name: "v2_throughput", Doc: "training throughput beside the baseline",
			Parts: []PresetPart{{Tasks: "throughput", Set: map[string]string{"lengths": "0"}}}},
	}
}
