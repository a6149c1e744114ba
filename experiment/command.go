package experiment

import "strings"

// flagsOf are the values of a command's flags by their names, in the order in which they stand. A flag without a value
// has "".
func flagsOf(command string) map[string][]string {
	out := map[string][]string{}
	words := shellWords(command)
	for i := 0; i < len(words); i++ {
		name, ok := strings.CutPrefix(words[i], "--")
		if !ok {
			continue
		}
		name, value, given := strings.Cut(name, "=")
		if !given && i+1 < len(words) && !strings.HasPrefix(words[i+1], "-") {
			i++
			value = words[i]
		}
		out[name] = append(out[name], value)
	}
	return out
}

// shellWords splits a line into words as a shell does, as far as ShellWord and the commands of the plan use its rules:
// marks of either kind quote everything to the next of their kind, and outside of them \' is a plain mark.
func shellWords(line string) (out []string) {
	var word strings.Builder
	quote, begun := rune(0), false
	text := []rune(line)
	for i := 0; i < len(text); i++ {
		r := text[i]
		switch {
		case r == quote:
			quote = 0
		case quote == 0 && (r == '\'' || r == '"'):
			quote, begun = r, true
		case quote == 0 && r == ' ':
			if begun {
				out = append(out, word.String())
			}
			word.Reset()
			begun = false
		default:
			if quote == 0 && r == '\\' && i+1 < len(text) && text[i+1] == '\'' {
				i++
				r = '\''
			}
			word.WriteRune(r)
			begun = true
		}
	}
	if begun {
		out = append(out, word.String())
	}
	return out
}
