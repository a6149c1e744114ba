package main

import (
	"fmt"
)

func int8AMXFile() []byte {
	a := newAsm(amx)
	a.include(missingFile)
	for _, way := range int8Ways {
		newInt8Tiles(a, way, false).emit()
		newInt8Tiles(a, way, true).emit()
	}
	return a.finish()
}

// int8Kernels is the kernels of an instruction set.
func int8Kernels(i isa) string {
	text := "int8Kernels{few: []fewInt8{"
	for r := 1; r <= int8Rows; r++ {
		tag := i.tag
		if r < i.firstInt8() {
			tag = dotARM.tag
		}
		text += fmt.Sprintf("%s%s,", int8Name(r, 1), tag)
	}
	text += "},\n"
	if i.wide() {
		var groups string
		text += "side: []fewInt8{"
		for r := 1; int8Group(r) > 1; r++ {
			text += fmt.Sprintf("%s%s,", int8Name(r, int8Group(r)), i.tag)
			groups += fmt.Sprintf("%d,", int8Group(r))
		}
		text += "},\ngroups: []int{" + groups + "}, planes: true,\n"
	}
	if i.planar() || i.tag == avxVNNI.tag {
		text += "planes: true,\n"
	}
	tag := i.tag
	if tag == matrixARM.tag {
		tag = dotARM.tag
	}
	return text + fmt.Sprintf("top: topInt8%s, split: splitInt8%s, peak: %q}", tag, tag, i.file+" int8")
}

// declareInt8Set declares the kernels of an instruction set.
func declareInt8Set(declare func(format string, a ...any), i isa) {
	const few = "%s%s(steps int, x *int16, step int, w *int8, head, c *float32, ldc int, scale *float32, panels, " +
		"stride int)"
	if i.tag != matrixARM.tag {
		declare("topInt8%s(x *float32, steps int) uint32", i.tag)
		declare("splitInt8%s(dst *int16, x *float32, steps, stride int, inv float32)", i.tag)
	}
	for r := i.firstInt8(); r <= int8Rows; r++ {
		declare(few, int8Name(r, 1), i.tag)
		if i.wide() && int8Group(r) > 1 {
			declare(few, int8Name(r, int8Group(r)), i.tag)
		}
	}
}

// declareInt8 declares the kernels of amd64.
func declareInt8(declare func(format string, a ...any)) {
	for _, i := range []isa{vnni, avx2, avxVNNI} {
		declareInt8Set(declare, i)
	}
	for _, way := range int8Ways {
		declare("%sAMX(p *int8Args)", tilesInt8Name(way, false))
		declare("%sAMX(p *int8Args)", tilesInt8Name(way, true))
	}
}
