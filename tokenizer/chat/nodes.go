package chat

// expr is an expression.
type expr interface {
	eval(r *run, s *scope) any
}

// Expressions.
type (
	constant  struct{ value any }
	nameExpr  struct{ name string }
	listExpr  struct{ items []expr }
	tupleExpr struct{ items []expr }
	dictExpr  struct{ keys, values []expr }
	notExpr   struct{ of expr }
	signExpr  struct {
		op string // - or +
		of expr
	}
	arithExpr struct {
		op   string
		x, y expr
	}
	concatExpr  struct{ parts []expr }
	compareExpr struct {
		first expr
		ops   []string
		rest  []expr
	}
	logicExpr struct {
		or   bool
		x, y expr
	}
	condExpr struct{ test, yes, no expr } // no may be nil
	attrExpr struct {
		of   expr
		name string
	}
	itemExpr  struct{ of, key expr }
	sliceExpr struct{ of, from, to, step expr } // each but of may be nil
	callExpr  struct {
		f    expr
		args *argExprs
	}
	filterExpr struct {
		of   expr // nil: the text of a block
		name string
		args *argExprs
	}
	testExpr struct {
		of   expr
		name string
		args *argExprs
	}
)

// argExprs are the arguments of a call.
type argExprs struct {
	args       []expr
	names      []string
	named      []expr
	star, keys expr // of *args and **kwargs
}

// stmt is a statement, or text. exec reports whether the loop around it ends or goes on with the next item.
type stmt interface {
	exec(r *run, s *scope, out *boundedText) signal
}

// signal is what a statement asks of the loop around it.
type signal int

const (
	goOn signal = iota
	breakLoop
	continueLoop
)

// Statements.
type (
	dataStmt   struct{ text string }
	printStmt  struct{ value expr }
	signalStmt struct{ signal signal }
	ifStmt     struct {
		tests  []expr
		bodies [][]stmt // one more than tests if there is an else
	}
	forStmt struct {
		target          *target
		over, test      expr // test may be nil
		body, otherwise []stmt
	}
	setStmt struct {
		target *target
		value  expr // nil: the text of body, filtered
		filter expr
		body   []stmt
	}
	macroStmt struct{ macro *macroDef }
	callStmt  struct {
		call   *callExpr
		caller *macroDef
	}
	scopeStmt struct { // with and generation
		targets []*target
		values  []expr
		body    []stmt
	}
	filterStmt struct {
		filter expr
		body   []stmt
	}
)

// target is what is assigned to: a name, an attribute of a namespace, or several targets.
type target struct {
	name, attribute string
	parts           []*target
	many            bool
}

// macroDef is a macro as it is written.
type macroDef struct {
	name     string
	params   []string
	defaults []expr // of the last parameters
	body     []stmt
	uses     map[string]bool // of the names caller, varargs and kwargs

	anonymous bool // the body of a call block
}
