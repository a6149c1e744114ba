package main

import (
	"fmt"
	"strings"
	"testing"
)

// A kernel that runs out of registers, or mixes them up, is not generated, and the message names both uses.
func TestRegisters(t *testing.T) {
	for _, c := range []struct {
		name, want string
		emit       func(a *asm)
	}{
		{"held twice", "R8 is wanted for rows and holds columns", func(a *asm) {
			a.hold("R8", "columns")
			a.hold("R8", "rows")
		}},
		{"used after drop", "R8 (columns) is used after drop", func(a *asm) {
			r := a.hold("R8", "columns")
			a.drop(r)
			a.hold("R8", "rows")
			a.mov("$1", r)
		}},
		{"address after drop", "R8 (columns) is used after drop", func(a *asm) {
			r := a.hold("R8", "columns")
			a.drop(r)
			a.mov("$1", mem(r, 8))
		}},
		{"fields after drop", "R8 (columns) is used after drop", func(a *asm) {
			f := fields{"outArgs", a.hold("R8", "columns")}
			a.drop(f.base.(*reg))
			a.mov("$1", f.at("rows"))
		}},
		{"dropped twice", "R8 (columns) is used after drop", func(a *asm) {
			r := a.hold("R8", "columns")
			a.drop(r)
			a.drop(r)
		}},
		{"by number", "Z3 in Z3 is not held by name", func(a *asm) { a.op("VXORPS", "Z3", "Z3", "Z3") }},
		{"in memory", "SI in 8(SI) is not held by name", func(a *asm) { a.mov("8(SI)", a.hold("AX", "x")) }},
		{"not lent", "Z4 in Z4 is not held by name", func(a *asm) {
			a.numbered(a.vecs(0, 4, "rows"), func() { a.op("VMOVUPS", a.v(4), a.v(0)) })
		}},
		{"too many vectors", "there is no register Z32 for rows", func(a *asm) { a.vecs(30, 3, "rows") }},
		{"too many tiles", "there is no register T8", func(a *asm) { a.tmm(8, "A") }},
		{"the stack's", "there is no register SP", func(a *asm) { a.hold("SP", "x") }},
		{"not saved", "there is no register BP", func(a *asm) { a.hold("BP", "x") }},
		{"no field", "no field colour in outArgs", func(a *asm) { a.take(fields{"outArgs", "DI"}, "colour", "AX") }},
		{"no array", "outArgs.rows is not an array", func(a *asm) { fields{"outArgs", "DI"}.at("rows", 1) }},
		{"no struct", "no struct inArgs", func(a *asm) { fields{"inArgs", "DI"}.at("rows") }},
	} {
		t.Run(c.name, func(t *testing.T) {
			defer func() {
				if got := fmt.Sprint(recover()); !strings.Contains(got, c.want) {
					t.Errorf("got %q, want %q", got, c.want)
				}
			}()
			a := newAsm(tiles)
			a.kernel("trial", "outArgs", 0, "DI")
			c.emit(a)
			t.Error("generated")
		})
	}
}

// What is lent to a routine that numbers its registers may be used by it, as any part of a vector.
func TestLentRegisters(t *testing.T) {
	a := newAsm(tiles)
	a.kernel("trial", "outArgs", 0, "DI")
	a.numbered(a.vecs(0, 2, "rows"), func() { a.op("VMOVUPS", "X1", "Z0") })
}

// BP may be held where the assembler saves it: in a function with a stack frame.
func TestFramePointer(t *testing.T) {
	a := newAsm(tiles)
	a.kernel("trial", "outArgs", 8, "DI")
	a.mov("$1", a.hold("BP", "x"))
}
