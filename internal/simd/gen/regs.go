package main

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// A kernel that begins with kernel names all its registers: hold says what one is for until drop, and the name is the
// Go variable. The generator refuses to hold a register twice, to use one after drop, and register names in plain
// strings. So a kernel whose registers do not suffice, or that overwrites one which is in use, is not generated.

// reg is a register that a kernel holds.
type reg struct {
	name string // as the assembler has it: R8, Z16, K1, or T4 for a tile
	what string
	of   *bank
}

// bank is the registers of a kernel, and which of them it holds.
type bank struct {
	function string          // whose they are
	frame    int             // bytes of its stack frame; BP is saved where there are any
	held     map[string]*reg // those in use, by name; nil in functions that do not name theirs
	lent     map[string]bool // those of them that a routine may use by number
}

// String is the operand.
func (r *reg) String() string {
	if r.of.held[r.name] != r {
		panic(fmt.Sprintf("gen: %s: %s (%s) is used after drop", r.of.function, r.name, r.what))
	}
	return r.name
}

// num is its number, of a vector or a tile.
func (r *reg) num() int {
	n, err := strconv.Atoi(r.String()[1:])
	if err != nil {
		panic("gen: " + r.name + " has no number")
	}
	return n
}

// low is the low 16 bytes of a vector, half the low 32.
func (r *reg) low() operand  { return operand(fmt.Sprintf("X%d", r.num())) }
func (r *reg) half() operand { return operand(fmt.Sprintf("Y%d", r.num())) }

// operand is text whose registers were checked.
type operand string

// operandText is an operand as the assembler has it. fmt would swallow the panic of a register that was dropped.
func operandText(x any) string {
	if r, ok := x.(*reg); ok {
		return r.String()
	}
	return fmt.Sprint(x)
}

// registers are those that any kernel may hold: all but the stack's, 32 vectors (16 of AVX2), 7 masks and 8 tiles.
var registers = regexp.MustCompile(`^([A-D]X|SI|DI|R([89]|1[0-5])|Y([0-9]|1[0-5])|Z([12]?[0-9]|3[01])|K[1-7]|T[0-7])$`)

// register finds one in a plain string.
var register = regexp.MustCompile(`\b([A-D]X|SI|DI|BP|R[0-9]+|[XYZ][0-9]+|K[0-7])\b`)

// named begins a function whose registers have names.
func (a *asm) named(name string, frame, args int) {
	a.text(name, frame, args)
	a.held = map[string]*reg{}
}

// kernel is named for a function whose one argument points to a struct of the table; base holds it.
func (a *asm) kernel(name, args string, frame int, base string) fields {
	a.named(name, frame, 8)
	p := a.hold(base, "arguments")
	a.op("MOVQ", "p+0(FP)", p)
	return fields{args, p}
}

// hold takes a register.
func (b *bank) hold(name, what string) *reg {
	if !registers.MatchString(name) && (name != "BP" || b.frame == 0) {
		panic(fmt.Sprintf("gen: %s: there is no register %s for %s", b.function, name, what))
	}
	if r := b.held[name]; r != nil {
		panic(fmt.Sprintf("gen: %s: %s is wanted for %s and holds %s", b.function, name, what, r.what))
	}
	r := &reg{name, what, b}
	b.held[name] = r
	return r
}

// vec takes vector n, tmm tile n; vecs and tmms take count of them.
func (b *bank) vec(n int, what string) *reg           { return b.hold(fmt.Sprintf("Z%d", n), what) }
func (b *bank) tmm(n int, what string) *reg           { return b.hold(fmt.Sprintf("T%d", n), what) }
func (b *bank) vecs(n, count int, what string) []*reg { return several(b.vec, n, count, what) }
func (b *bank) tmms(n, count int, what string) []*reg { return several(b.tmm, n, count, what) }

func several(take func(int, string) *reg, n, count int, what string) (all []*reg) {
	for i := range count {
		all = append(all, take(n+i, what))
	}
	return all
}

// ymm takes vector n of AVX2, ymms count of them.
func (b *bank) ymm(n int, what string) *reg           { return b.hold(fmt.Sprintf("Y%d", n), what) }
func (b *bank) ymms(n, count int, what string) []*reg { return several(b.ymm, n, count, what) }

// drop gives registers back.
func (b *bank) drop(all ...*reg) {
	for _, r := range all {
		delete(b.held, r.String())
	}
}

// numbered runs a routine of other files, which numbers its registers: it may use these.
func (b *bank) numbered(uses []*reg, f func()) {
	b.lent = map[string]bool{}
	for _, r := range uses {
		b.lent[r.String()] = true
	}
	f()
	b.lent = nil
}

// check refuses plain register names where registers are held by name, but those lent to a numbered routine.
func (b *bank) check(args []any) {
	for _, x := range args {
		s, ok := x.(string)
		if !ok || b.held == nil {
			continue
		}
		for _, r := range register.FindAllString(s, -1) {
			if !b.lent[strings.NewReplacer("X", "Z", "Y", "Z").Replace(r)] && !b.lent[r] {
				panic(fmt.Sprintf("gen: %s: %s in %s is not held by name", b.function, r, s))
			}
		}
	}
}

// mem is memory at a register; the offset, if any, is in bytes.
func mem(base *reg, off ...int) operand {
	if len(off) == 0 {
		return operand("(" + base.String() + ")")
	}
	return operand(fmt.Sprintf("%d(%s)", off[0], base.String()))
}

// indexed is memory at base + scale·index + off.
func indexed(base, index *reg, scale int, off ...int) operand {
	return operand(fmt.Sprintf("%s(%s*%d)", mem(base, off...), index.String(), scale))
}

// mov, add and sub are of 64 bits: from, to.
func (a *asm) mov(from, to any) { a.op("MOVQ", from, to) }
func (a *asm) add(from, to any) { a.op("ADDQ", from, to) }
func (a *asm) sub(from, to any) { a.op("SUBQ", from, to) }

// lea is the address of an operand.
func (a *asm) lea(of any, to *reg) { a.op("LEAQ", of, to) }

// shl multiplies by 2^n.
func (a *asm) shl(n int, x any) { a.op("SHLQ", imm(n), x) }

// zero clears registers: general ones, or vectors.
func (a *asm) zero(all ...*reg) {
	for _, r := range all {
		if r.name[0] == 'Z' || r.name[0] == 'Y' {
			a.op("VXORPS", r, r, r)
		} else {
			a.op("XORL", r, r)
		}
	}
}

// jump compares x with y and jumps.
func (a *asm) jump(x any, y int, how, label string) {
	a.op("CMPQ", x, imm(y))
	a.op(how, label)
}

// repeat runs body as often as count says, at least once; count is lost.
func (a *asm) repeat(label string, count any, body func()) {
	a.mark(label)
	body()
	a.again(label, count)
}

// again ends a loop that began at a mark.
func (a *asm) again(label string, count any) {
	a.op("DECQ", count)
	a.op("JNZ", label)
}

// ret leaves a function that has used vectors.
func (a *asm) ret() {
	a.op("VZEROUPPER")
	a.op("RET")
}

// roundPair is narrowPair, widen the way back, on registers by name.
func roundPair(dst, high, low *reg) macro { return narrowPair(dst.num(), high.num(), low.num()) }

func widen(a *asm, from operand, to *reg) {
	a.op("VPMOVZXWD", from, to)
	a.op("VPSLLD", "$16", to, to)
}

// configTiles loads the tiles' shape, which a field points to.
func configTiles(a *asm, config operand) {
	at := a.hold("AX", "shape of tiles")
	a.mov(config, at)
	a.use(tileConfig(at))
	a.drop(at)
}
