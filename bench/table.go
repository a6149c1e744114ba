package bench

import (
	"fmt"
	"io"
	"text/tabwriter"
	"unicode/utf8"
)

// Print writes rows as a table, with the ops of a step below it.
func Print(w io.Writer, rows []Row) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	wide := 0
	for _, r := range rows {
		wide = max(wide, utf8.RuneCountInString(r.Name))
	}
	fmt.Fprintf(tw, "%-*s\tMEDIAN\tUNIT\tQUARTILES\tRATE\tCEILING\tSHARE\tMEMORY\t\n", wide, "WHAT")
	for _, r := range rows {
		fmt.Fprintf(tw, "%-*s\t%s\t%s\t%s … %s\t%s %s\t%s\t%.1f%%\t%s\t\n", wide, r.Name, number(r.Value), r.Unit,
			number(r.Low), number(r.High), number(r.Rate), r.RateUnit, number(r.CeilingRate), 100*r.Share,
			memory(r.Memory))
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	if len(rows) > 0 {
		fmt.Fprintf(w, "ceiling: %s; %s\n", ceilings(rows), repetitions(rows))
	}
	for _, r := range rows {
		if len(r.Ops) == 0 {
			continue
		}
		fmt.Fprintf(w, "\nops of %s\n", r.Name)
		if err := printOps(w, r.Ops); err != nil {
			return err
		}
	}
	return nil
}

// repetitions says how often the rows were measured; prompts are measured less often than steps.
func repetitions(rows []Row) string {
	s := fmt.Sprintf("%d repetitions after %d to warm up", rows[0].Reps, rows[0].Warmup)
	for i, r := range rows[1:] {
		if before := rows[i]; r.Reps != before.Reps || r.Warmup != before.Warmup {
			s += fmt.Sprintf(", then %d after %d", r.Reps, r.Warmup)
		}
	}
	return s
}

// ceilings names the ceilings of the rows, each once.
func ceilings(rows []Row) string {
	s := ""
	seen := map[string]bool{}
	for _, r := range rows {
		if !seen[r.Ceiling] {
			if s != "" {
				s += ", "
			}
			s += r.Ceiling
		}
		seen[r.Ceiling] = true
	}
	return s
}

// printOps lists ops by their time, the largest first.
func printOps(w io.Writer, ops []OpTime) error {
	var sum, flops float64
	for _, o := range ops {
		sum += o.Seconds
		flops += o.FLOPs
	}
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(tw, "OP\tSHAPE\tCALLS\tMS\tSHARE\tTFLOP/S\tGB/S\t")
	for _, o := range ops {
		rate := ""
		if o.FLOPs > 0 {
			rate = number(o.FLOPs / o.Seconds / 1e12)
		}
		fmt.Fprintf(tw, "%s\t%s\t%g\t%.3f\t%.1f%%\t%s\t%s\t\n", o.Op, o.Shape, o.Calls, 1e3*o.Seconds,
			100*o.Seconds/sum, rate, number(o.Bytes/o.Seconds/1e9))
	}
	fmt.Fprintf(tw, "all ops\t\t\t%.3f\t100%%\t%s\t\t\n", 1e3*sum, number(flops/sum/1e12))
	return tw.Flush()
}

// number has three significant digits, or all before the point.
func number(x float64) string {
	switch {
	case x >= 100 || x == 0:
		return fmt.Sprintf("%.0f", x)
	case x >= 10:
		return fmt.Sprintf("%.1f", x)
	case x >= 1:
		return fmt.Sprintf("%.2f", x)
	}
	return fmt.Sprintf("%.3g", x)
}

func memory(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("%.2f GiB", float64(n)/(1<<30))
}
