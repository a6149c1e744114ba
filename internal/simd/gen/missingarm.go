package main

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
)

// The Go assembler knows few of NEON's instructions on numbers. Those that it lacks are macros of one word in a header, named after their
// disassembly, which stands beside them; a test compares it with that of binutils.

const missingARM = "missing_arm64.h"

// word uses a missing instruction; text is how a disassembler shows it.
func (a *asm) word(code uint32, text string) {
	name := strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return unicode.ToUpper(r)
		}
		return '_'
	}, strings.NewReplacer(", ", "_", "[", "_", "]", "", "#", "").Replace(text))
	if a.dry {
		return
	}
	macros[missingARM][name] = fmt.Sprintf("#define %s WORD $0x%08X // %s", name, code, text)
	a.op(name)
}

// number is that of a vector register.
func number(reg string) uint32 {
	n, err := strconv.Atoi(strings.TrimPrefix(reg, "V"))
	if err != nil || n > 31 {
		panic("gen: no register " + reg)
	}
	return uint32(n)
}

// vvv is an instruction on three registers of the same shape.
func (a *asm) vvv(code uint32, name, shape, d, n, m string) {
	if name == "mov" { // one source, twice
		a.word(code|number(m)<<16|number(n)<<5|number(d), fmt.Sprintf("mov v%d.%s, v%d.%s", number(d), shape, number(n), shape))
		return
	}
	a.word(code|number(m)<<16|number(n)<<5|number(d), fmt.Sprintf("%s v%d.%s, v%d.%s, v%d.%s", name, number(d), shape, number(n), shape, number(m), shape))
}

// vv is one on two registers of four numbers.
func (a *asm) vv(code uint32, name, d, n string) { a.turned(code, name, "4s", "4s", d, n) }

// turned changes the shape on the way.
func (a *asm) turned(code uint32, name, to, from, d, n string) {
	a.word(code|number(n)<<5|number(d), fmt.Sprintf("%s v%d.%s, v%d.%s", name, number(d), to, number(n), from))
}

// longer multiplies halves of registers into whole ones: shapes are those of the result and of the factors.
func (a *asm) longer(code uint32, name, to, from, d, n, m string) {
	a.word(code|number(m)<<16|number(n)<<5|number(d), fmt.Sprintf("%s v%d.%s, v%d.%s, v%d.%s", name, number(d), to, number(n), from, number(m), from))
}

// shifted moves numbers by distance, encoded as at.
func (a *asm) shifted(code uint32, name string, at, distance int, d, n string) {
	a.word(code|uint32(at)<<16|number(n)<<5|number(d), fmt.Sprintf("%s v%d.4s, v%d.4s, #%d", name, number(d), number(n), distance))
}

// fmaLane: d += n·(number i of m).
func (a *asm) fmaLane(d, n, m string, i int) {
	a.word(0x4F801000|lane(i)|number(m)<<16|number(n)<<5|number(d), fmt.Sprintf("fmla v%d.4s, v%d.4s, v%d.s[%d]", number(d), number(n), number(m), i))
}

// lane is the number of a lane of 32 bits in an encoding.
func lane(i int) uint32 { return uint32(i&1)<<21 | uint32(i>>1)<<11 }

func imm(n int) string { return fmt.Sprintf("$%d", n) }
