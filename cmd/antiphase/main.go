// Command antiphase trains, resumes, evaluates and runs Differential Transformers.
package main

import "os"

func main() { os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }
