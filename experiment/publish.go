package experiment

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"antiphase/data"
	"antiphase/eval/report"
	"antiphase/internal/fault"
	"antiphase/internal/vfs"
)

// unpublished is an error of gathering the rows of all runs or of writing the pages. It concerns the experiment, not
// the run that meets it, and publish, which is called once more at the end, would only repeat it.
type unpublished struct{ error }

func (u unpublished) Unwrap() error { return u.error }

func isUnpublished(err error) bool {
	_, ok := errors.AsType[unpublished](err)
	return ok
}

// rows are those of all finished runs of the grid, in its order.
func (l *lab) rows() ([]Row, error) {
	runs, err := l.spec.Grid(nil)
	if err != nil {
		return nil, err
	}
	var out []Row
	for i := range runs {
		path := filepath.Join(l.dir(&runs[i]), rowsName)
		rows, err := ReadRowFiles(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if fault := l.spec.notOf(&runs[i], rows); err == nil && fault != "" {
			err = &data.CorruptError{File: path, Fault: fault + "; delete it to repeat the run"}
		}
		if err != nil {
			return nil, unpublished{err}
		}
		out = append(out, rows...)
	}
	return out, nil
}

// pace does something beside the caller's own work, and limits how often.
type pace struct {
	mu    sync.Mutex
	done  chan struct{} // closed when the call in progress ends; nil if there was none
	again time.Time     // not before
	err   error         // of a call that has ended
}

// do begins f, unless it is in progress, or its last call ended so recently that calls would take more than 2 % of the
// time. It returns the error of an earlier call.
func (p *pace) do(f func() error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err != nil || time.Now().Before(p.again) {
		return p.err
	}
	if p.done != nil {
		select {
		case <-p.done:
		default:
			return nil
		}
	}
	done := make(chan struct{})
	p.done = done
	go func() {
		defer fault.Guard()()
		defer close(done)
		begin := time.Now()
		err := f()
		p.mu.Lock()
		defer p.mu.Unlock()
		p.err, p.again = err, time.Now().Add(50*time.Since(begin))
	}()
	return nil
}

// wait returns when no call is in progress.
func (p *pace) wait() {
	p.mu.Lock()
	done := p.done
	p.mu.Unlock()
	if done != nil {
		<-done
	}
}

// finish publishes whatever is finished, and adds what went wrong with it to the error that ended the work, unless that
// one already says so.
func finish(l *lab, worked error) ([]Row, error) {
	l.pages.wait()
	rows, err := l.publish()
	if isUnpublished(worked) {
		err = nil
	}
	if err = errors.Join(worked, err); err != nil {
		return nil, err
	}
	return rows, nil
}

// publish writes the rows of all finished runs, as JSON and as CSV, and the page.
func (l *lab) publish() ([]Row, error) {
	rows, err := l.rows()
	if err != nil || len(rows) == 0 {
		return rows, err
	}
	b, err := Encode(rows)
	if err != nil {
		return nil, err
	}
	var page bytes.Buffer
	p := l.Page(rows)
	l.mu.Lock()
	runs := l.runs
	l.mu.Unlock()
	p.Experiment.Lead = unfinished(runs, l.done) + p.Experiment.Lead
	if err := p.HTML(&page); err != nil { // a buffer takes everything: rows have details that are no figure's
		return nil, unpublished{&data.CorruptError{File: l.Dir, Fault: err.Error()}}
	}
	for _, file := range []struct {
		name string
		b    []byte
	}{{rowsName, b}, {csvName, table(rows)}, {reportName, page.Bytes()}} {
		if err := vfs.WriteFile(vfs.OS{}, filepath.Join(l.Dir, file.name), file.b); err != nil {
			return nil, unpublished{err}
		}
	}
	if err := l.watch.write(l.Dir); err != nil {
		return nil, unpublished{err}
	}
	return rows, nil
}

// unfinished is a sentence about the runs that are missing, "" if there are none.
func unfinished(runs []Run, finished func(*Run) bool) string {
	done := 0
	var missing []string
	for i := range runs {
		r := &runs[i]
		if finished(r) {
			done++
		} else if s := fmt.Sprintf("%s %s seed %d", r.Size, r.Arch, r.Seed); !slices.Contains(missing, s) {
			missing = append(missing, s) // without its rate, which may not have been chosen yet
		}
	}
	if len(missing) == 0 {
		return ""
	}
	const most = 6
	return fmt.Sprintf("Unfinished: %d of %d runs are there; %s missing. ", done, len(runs),
		strings.Join(missing[:min(len(missing), most)], ", ")+more(len(missing)-most))
}

// more is the end of a list that n entries are left out of.
func more(n int) string {
	if n <= 0 {
		return ""
	}
	return fmt.Sprintf(" and %d more", n)
}

// Page is the page of the experiment's rows, with next steps.
func (o *Options) Page(rows []Row) *report.Page {
	p := Summarize(rows)
	program, dir := cmp.Or(o.Program, "antiphase"), ShellWord(o.Dir)
	p.Experiment.Next = []string{"More seeds, learning rates or architectures: the same command with longer lists; " +
		"finished runs stay as they are."}
	failed := map[string]bool{}
	for _, r := range rows {
		failed[r.Run] = failed[r.Run] || r.Measure == Failed
	}
	for _, r := range slices.Backward(rows) {
		run := filepath.Join(o.Dir, "runs", r.Run)
		if !failed[r.Run] && vfs.Exists(vfs.OS{}, filepath.Join(run, "checkpoints")) {
			p.Experiment.Next = append(p.Experiment.Next,
				fmt.Sprintf("Let a model write: %s generate --model %s -p \"The\"", program, ShellWord(run)))
			break
		}
	}
	p.Experiment.Next = append(p.Experiment.Next,
		fmt.Sprintf("Every claim of the paper and of DIFF V2, as a document: %s evidence %s -o evidence.md",
			program, dir),
		fmt.Sprintf("What the words mean: %s help glossary", program))
	return p
}

// ShellWord quotes a word for a shell of this system.
func ShellWord(s string) string { return shellWord(s, runtime.GOOS) }

// shellWord quotes a word unless all its characters are plain. On Windows a backslash is, and only double quotation
// marks are known to all shells.
func shellWord(s, system string) string {
	more, quote := "_./:=,@%+-", "'"
	if system == "windows" {
		more, quote = more+`\`, `"`
	}
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune(more, r)
	}
	if s != "" && strings.IndexFunc(s, func(r rune) bool { return !plain(r) }) < 0 {
		return s
	}
	if quote == "'" {
		s = strings.ReplaceAll(s, "'", `'\''`)
	}
	return quote + s + quote
}

// table is the rows' numbers as CSV, without curves and items.
func table(rows []Row) []byte {
	var b bytes.Buffer
	w := csv.NewWriter(&b)
	_ = w.Write([]string{"experiment", "run", "size", "arch", "lr", "seed", "parameters", "tokens", "measure",
		"value", "stderr", "n"}) // writes to a buffer do not fail
	number := func(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }
	for _, r := range rows {
		_ = w.Write([]string{r.Experiment, r.Run, r.Size, r.Arch, number(r.LR), strconv.FormatUint(r.Seed, 10),
			strconv.Itoa(r.Parameters),
			strconv.FormatInt(r.Tokens, 10), r.Measure, number(r.Value), number(r.StdErr), strconv.Itoa(r.N)})
	}
	w.Flush()
	return b.Bytes()
}
