// Package results holds committed measurements that the program itself needs; documents are rendered from the other
// files here.
package results

import _ "embed" // the file below

// SpeedrunSeeds are the plans of the speedrun measured over many seeds, one [antiphase/experiment.Repeat] a line:
// they decide which sentences its verdict has. It is empty until "antiphase speedrun --seeds 10" has been run for a
// plan.
//
//go:embed speedrun-seeds.jsonl
var SpeedrunSeeds []byte
