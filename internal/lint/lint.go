// Package lint enforces the house rules, as ordinary tests: go test ./internal/lint.
//
// imports_test.go holds the table of who may import whom, and who may access host memory; size_test.go bounds functions
// and files, width_test.go lines; doc_test.go requires comments; text_test.go forbids leftovers and paths of one
// machine; prose_test.go forbids stilted phrases; repeat_test.go forbids runs of lines that stand twice; panic_test.go
// keeps panics away from user input; stem_test.go gives an op the same file name on every device. A rule is a function
// from parsed files to offenders, so rules_test.go can prove on small wrong sources that each one can fail. The package
// builds into nothing.
package lint
