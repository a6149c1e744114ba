package data

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// person is one inhabitant of a small world.
type person struct {
	name, they string // "Anna", "she"
	place      string
	mood       string   // "", or a mood with a cause: "sad", "hungry", "tired"
	because    string   // the cause of the mood
	holds      []string // things
}

// world is the state of the prose: who is where, holds what, feels how. Every sentence follows from the state and
// changes it, so a reader who remembers predicts better.
type world struct {
	r      *rand.Rand
	people []*person
	places []string
	lying  map[string][]string // place → things lying there
}

// Prose tells of small worlds in at most n bytes of whole sentences; if not even one fits, the text is empty. Worlds of
// about six events follow each other as paragraphs.
func Prose(r *rand.Rand, n int) string {
	var b strings.Builder
	for {
		w := newWorld(r)
		sentences := w.opening()
		for range 5 + r.IntN(6) {
			sentences = append(sentences, w.event()...)
		}
		for i, s := range sentences {
			sep := " "
			switch {
			case b.Len() == 0:
				sep = ""
			case i == 0:
				sep = "\n"
			}
			if b.Len()+len(sep)+len(s) > n {
				return b.String()
			}
			b.WriteString(sep)
			b.WriteString(s)
		}
	}
}

func newWorld(r *rand.Rand) *world {
	w := &world{r: r, places: sample(r, places, 3), lying: map[string][]string{}}
	for i, name := range sample(r, append(slices.Clone(women), men...), 2+r.IntN(2)) {
		p := &person{name: name, they: "he", place: w.places[i%2]}
		if slices.Contains(women, name) {
			p.they = "she"
		}
		w.people = append(w.people, p)
	}
	for _, thing := range sample(r, things, 3) {
		place := pick(r, w.places)
		w.lying[place] = append(w.lying[place], thing)
	}
	return w
}

// opening introduces the people and the things.
func (w *world) opening() (s []string) {
	for _, p := range w.people {
		s = append(s, fmt.Sprintf("%s was in the %s.", p.name, p.place))
	}
	for _, place := range w.places {
		for _, thing := range w.lying[place] {
			s = append(s, fmt.Sprintf("The %s lay in the %s.", thing, place))
		}
	}
	return s
}

// event makes one thing happen. A mood is acted upon first, so that effects soon follow causes.
func (w *world) event() []string {
	p := pick(w.r, w.people)
	if p.mood != "" {
		return w.relieve(p)
	}
	switch w.r.IntN(6) {
	case 0:
		return w.take(p)
	case 1:
		return w.give(p)
	case 2:
		return w.lose(p)
	case 3:
		return w.tire(p)
	case 4:
		return w.recall(p)
	}
	return w.walk(p)
}

func (w *world) others(p *person) (here []*person) {
	for _, q := range w.people {
		if q != p && q.place == p.place {
			here = append(here, q)
		}
	}
	return here
}

// walk moves a person and tells whom and what they find.
func (w *world) walk(p *person) []string {
	to := pick(w.r, w.places)
	if to == p.place {
		return []string{fmt.Sprintf("%s stayed in the %s.", p.name, p.place)}
	}
	s := []string{fmt.Sprintf("%s walked from the %s to the %s.", p.name, p.place, to)}
	p.place = to
	if here := w.others(p); len(here) > 0 {
		s = append(s, fmt.Sprintf("There %s met %s.", p.they, here[0].name))
	} else if lying := w.lying[to]; len(lying) > 0 {
		s = append(s, fmt.Sprintf("There %s saw the %s.", p.they, lying[0]))
	}
	return s
}

func (w *world) take(p *person) []string {
	lying := w.lying[p.place]
	if len(lying) == 0 {
		return w.walk(p)
	}
	thing := lying[0]
	w.lying[p.place] = lying[1:]
	p.holds = append(p.holds, thing)
	return []string{fmt.Sprintf("%s picked up the %s.", p.name, thing)}
}

// give transfers a thing, which makes the receiver glad.
func (w *world) give(p *person) []string {
	here := w.others(p)
	if len(p.holds) == 0 || len(here) == 0 {
		return w.take(p)
	}
	q, thing := here[0], p.holds[0]
	p.holds = p.holds[1:]
	q.holds = append(q.holds, thing)
	q.mood, q.because = "", ""
	return []string{
		fmt.Sprintf("%s gave the %s to %s.", p.name, thing, q.name),
		fmt.Sprintf("%s was glad because %s had the %s now.", q.name, q.they, thing),
	}
}

// lose drops a thing at the person's place and makes them sad.
func (w *world) lose(p *person) []string {
	if len(p.holds) == 0 {
		return w.take(p)
	}
	thing := p.holds[0]
	p.holds = p.holds[1:]
	w.lying[p.place] = append(w.lying[p.place], thing)
	p.mood, p.because = "sad", thing
	return []string{
		fmt.Sprintf("%s lost the %s in the %s.", p.name, thing, p.place),
		fmt.Sprintf("So %s was sad.", p.they),
	}
}

func (w *world) tire(p *person) []string {
	if w.r.IntN(2) == 0 {
		p.mood, p.because = "hungry", pick(w.r, foods)
		return []string{fmt.Sprintf("%s was hungry and thought of %s.", p.name, p.because)}
	}
	p.mood = "tired"
	return []string{fmt.Sprintf("%s was tired after a long day.", p.name)}
}

// relieve responds to a mood according to its cause.
func (w *world) relieve(p *person) []string {
	mood, because := p.mood, p.because
	p.mood, p.because = "", ""
	switch mood {
	case "hungry":
		return []string{fmt.Sprintf("Because %s was hungry, %s ate some %s.", p.name, p.they, because)}
	case "tired":
		return []string{fmt.Sprintf("Because %s was tired, %s slept in the %s.", p.name, p.they, p.place)}
	}
	for _, place := range w.places {
		if i := slices.Index(w.lying[place], because); i >= 0 {
			w.lying[place] = slices.Delete(slices.Clone(w.lying[place]), i, i+1)
			p.holds = append(p.holds, because)
			p.place = place
			return []string{
				fmt.Sprintf("%s looked for the %s and found it in the %s.", p.name, because, place),
				fmt.Sprintf("So %s was happy again.", p.they),
			}
		}
	}
	return []string{fmt.Sprintf("%s heard that someone else had the %s.", p.name, because)}
}

// recall restates something the story so far implies.
func (w *world) recall(p *person) []string {
	if len(p.holds) > 0 {
		return []string{fmt.Sprintf("What did %s have? %s had the %s.", p.name, p.name, p.holds[0])}
	}
	return []string{fmt.Sprintf("Where was %s? %s was in the %s.", p.name, p.name, p.place)}
}
