package data

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// fact is a statement and its question; the answer repeats the statement.
type fact struct{ statement, question string }

// newFact draws a fact about a person.
func newFact(r *rand.Rand, name string) fact {
	switch r.IntN(4) {
	case 0:
		thing := pick(r, things)
		return fact{fmt.Sprintf("The %s of %s is %s.", thing, name, pick(r, colours)),
			fmt.Sprintf("What colour is the %s of %s?", thing, name)}
	case 1:
		return fact{fmt.Sprintf("%s lives in %s.", name, pick(r, cities)), fmt.Sprintf("Where does %s live?", name)}
	case 2:
		return fact{fmt.Sprintf("%s works as a %s.", name, pick(r, jobs)), fmt.Sprintf("What does %s work as?", name)}
	}
	return fact{fmt.Sprintf("%s has a %s %s.", name, pick(r, colours), pick(r, animals)),
		fmt.Sprintf("Which animal does %s have?", name)}
}

// factsDocument states one fact about each of several people, adds some prose, and asks for the facts in another order.
func factsDocument(r *rand.Rand, n int) string {
	names := append(slices.Clone(women), men...)
	count := max(2, min(len(names)/2, n/150))
	var facts []fact
	var b strings.Builder
	for i, name := range sample(r, names, count) {
		facts = append(facts, newFact(r, name))
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(facts[i].statement)
	}
	tail := 0
	for _, f := range facts {
		tail += len("\n ") + len(f.question) + len(f.statement)
	}
	if prose := Prose(r, n-b.Len()-tail-1); prose != "" {
		b.WriteString("\n" + prose)
	}
	r.Shuffle(len(facts), func(i, j int) { facts[i], facts[j] = facts[j], facts[i] })
	for _, f := range facts {
		b.WriteString("\n" + f.question + " " + f.statement)
	}
	return b.String()
}
