package task

// Published is a published table, figure or claim, with the preset that reproduces it or the reason why there is none.
type Published struct {
	What   string
	Preset string
	Why    string // why there is none; empty with a preset
}

// AllPublished lists the paper (arXiv 2410.05258v2), its slides and DIFF V2's page. docs/evaluation.md has the same
// table.
func AllPublished() []Published {
	return []Published{
		{"Table 1", "table1", ""},
		{"Table 2", "table2", ""},
		{"Table 3", "table3", ""},
		{"Table 4", "table4", ""},
		{"Table 5", "table5", ""},
		{"Table 6", "table6", ""},
		{"Table 7", "table7", ""},
		{"Table 8", "table8", ""},
		{"Table 9", "", "hyperparameters, not a measurement: `antiphase recipes` shows ours"},
		{"Table 10", "", "model sizes of the scaling runs, not a measurement: `antiphase recipes`"},
		{"Figure 1", "figure1", ""},
		{"Figure 2", "", "a drawing of the architecture; `layer/attn_diff.go` is its equation"},
		{"Figure 3", "figure3", ""},
		{"Figure 4", "figure4", ""},
		{"Figure 5", "figure5", ""},
		{"Figure 6", "figure6", ""},
		{"Figure 7", "figure7", ""},
		{"Figure 8", "figure8", ""},
		{"Figure 9", "figure9", ""},
		{"Figure 10", "figure10", ""},
		{"Figure 11", "figure11", ""},
		{"Appendix G", "appendix_g", ""},
		{"Slides", "", "they repeat Figures 1 and 3 to 8 and Tables 2 to 5; “38 % fewer parameters” and “36 % fewer " +
			"tokens” are readings of Figure 3"},
		{"V2: loss", "v2_loss", ""},
		{"V2: context RMS", "v2_context", ""},
		{"V2: gradient norm and spikes", "v2_stability", ""},
		{"V2: activation outliers", "v2_outliers", ""},
		{"V2: ablations", "v2_ablations", ""},
		{"V2: low-precision attention", "v2_lowbit", ""},
		{"V2: training throughput", "v2_throughput", ""},
		{"V2: decoding speed", "",
			"`antiphase bench decode` measures it: it is a property of the machine, not of a model's answers"},
		{"V2: 30A3 mixture of experts, block-sparse attention, YOCO prefill", "",
			"other architectures, which this program does not have"},
	}
}
