package hf

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"antiphase/model"
)

// How a model computes λ, as stated in a folder of class Antiphase.
const (
	lambdaNone       = "none"       // one map per head
	lambdaVectors    = "vectors"    // one λ per layer, from four vectors
	lambdaProjection = "projection" // one λ per token and head
)

// lambdaKind is determined from the parameter table.
func lambdaKind(c model.Config) string {
	kind, vectors := lambdaNone, 0
	for _, x := range extras(c) {
		if isLambda("." + x.name) {
			vectors++
		}
		if x.name == "lambda.weight" {
			kind = lambdaProjection
		}
	}
	if vectors == 4 {
		kind = lambdaVectors
	}
	return kind
}

// isLambda reports whether a tensor is one of the vectors of λ.
func isLambda(name string) bool {
	return strings.Contains(name, ".lambda_q") || strings.Contains(name, ".lambda_k")
}

// Lambdas is λ of every layer, exp(q1·k1) − exp(q2·k2) + λ_init, computed from the weights. It is nil for a model
// without λ, and known is false if λ depends on the token.
func Lambdas(c model.Config, get Values) (list []float64, known bool, err error) {
	if kind := lambdaKind(c); kind != lambdaVectors {
		return nil, kind == lambdaNone, nil
	}
	for i := range c.Layers {
		at := "layers." + strconv.Itoa(i) + ".attn."
		a, err := dot(get, at+"lambda_q1", at+"lambda_k1")
		if err != nil {
			return nil, true, err
		}
		b, err := dot(get, at+"lambda_q2", at+"lambda_k2")
		if err != nil {
			return nil, true, err
		}
		list = append(list, math.Exp(a)-math.Exp(b)+c.LambdaInitAt(i))
	}
	return list, true, nil
}

func dot(get Values, a, b string) (sum float64, err error) {
	x, err := get(a)
	if err != nil {
		return 0, err
	}
	y, err := get(b)
	if err != nil {
		return 0, err
	}
	if len(x) != len(y) {
		return 0, fmt.Errorf("parameters %q and %q have %d and %d values", a, b, len(x), len(y))
	}
	for i := range x {
		sum += float64(x[i]) * float64(y[i])
	}
	return sum, nil
}
