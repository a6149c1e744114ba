package main

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
)

// The Go assembler lacks many of NEON's numeric instructions. A missing one is a macro of one word in a header, with
// its disassembly as a comment; a test compares it with that of binutils.

const missingARM = "missing_arm64.h"

// word is an instruction of this code; text is how a disassembler shows it.
func word(code uint32, text string) macro {
	name := strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return unicode.ToUpper(r)
		}
		return '_'
	}, strings.NewReplacer(", ", "_", "[", "_", "]", "", "#", "").Replace(text))
	return macro{name, missingARM, fmt.Sprintf("#define %s WORD $0x%08X // %s", name, code, text)}
}

// number is the number of a vector register.
func number(reg string) uint32 {
	n, err := strconv.Atoi(strings.TrimPrefix(reg, "V"))
	if err != nil || n > 31 {
		panic("gen: no register " + reg)
	}
	return uint32(n)
}

// vvv is an instruction on three registers of the same shape.
func vvv(code uint32, name, shape, d, n, m string) macro {
	if name == "mov" { // one source, twice
		return word(code|number(m)<<16|number(n)<<5|number(d),
			fmt.Sprintf("mov v%d.%s, v%d.%s", number(d), shape, number(n), shape))
	}
	return word(code|number(m)<<16|number(n)<<5|number(d),
		fmt.Sprintf("%s v%d.%s, v%d.%s, v%d.%s", name, number(d), shape, number(n), shape, number(m), shape))
}

// vv is one on two registers of four numbers.
func vv(code uint32, name, d, n string) macro { return turned(code, name, "4s", "4s", d, n) }

// turned is an instruction whose result has another shape than its operand.
func turned(code uint32, name, to, from, d, n string) macro {
	return word(code|number(n)<<5|number(d), fmt.Sprintf("%s v%d.%s, v%d.%s", name, number(d), to, number(n), from))
}

// longer is an instruction whose result has elements twice as wide as its factors.
func longer(code uint32, name, to, from, d, n, m string) macro {
	return word(code|number(m)<<16|number(n)<<5|number(d),
		fmt.Sprintf("%s v%d.%s, v%d.%s, v%d.%s", name, number(d), to, number(n), from, number(m), from))
}

// shifted shifts numbers by distance, which the instruction encodes as at.
func shifted(code uint32, name string, at, distance int, d, n string) macro {
	return word(code|uint32(at)<<16|number(n)<<5|number(d),
		fmt.Sprintf("%s v%d.4s, v%d.4s, #%d", name, number(d), number(n), distance))
}

// fmaLane: d += n·(number i of m).
func fmaLane(d, n, m string, i int) macro {
	return word(0x4F801000|lane(i)|number(m)<<16|number(n)<<5|number(d),
		fmt.Sprintf("fmla v%d.4s, v%d.4s, v%d.s[%d]", number(d), number(n), number(m), i))
}

// lane is the number of a lane of 32 bits in an encoding.
func lane(i int) uint32 { return uint32(i&1)<<21 | uint32(i>>1)<<11 }

func imm(n int) string { return fmt.Sprintf("$%d", n) }
