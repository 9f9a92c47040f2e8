// Command shape fails when the code grows out of shape: a type, a package or a line that is larger than docs/dev/coding.md allows,
// a package comment whose list of files is not what is in the folder, a nolint of a linter that does not run.
//
// What is too large today stands in hack/shape/excess.txt with its figure, which may fall and never rise.
//
//	go run ./hack/shape          checks
//	go run ./hack/shape -write   writes the figures that have fallen, and those of moved code under their new names
package main

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// limit is what one thing may have at most.
type limit struct {
	max      int
	what, do string
}

// limits are all of them. measure.go says what is counted.
var limits = map[string]limit{
	"methods": {40, "methods of the type", "move what does another job to a type of its own"},
	"fields":  {30, "fields of the struct", "group fields that belong together in a struct"},
	"files":   {25, "files of the package", "give what belongs together a package of its own"},
	"lines":   {4000, "lines of the package", "give what belongs together a package of its own"},
	"width":   {0, "lines of the file that are wider than 140 columns", "wrap them"},
	"list": {
		0, "differences between the folder and the list in its package comment",
		"write one line //\\t<file>.go  what it is for, for each file",
	},
}

// key is one thing that is measured: the name of a limit, and a type, folder or file.
type key struct{ limit, subject string }

func main() {
	root, write := flag.String("root", ".", "folder of the repository"), flag.Bool("write", false, "write the figures that have fallen")
	flag.Parse()
	complaints, err := run(*root, *write)
	if err != nil {
		fmt.Fprintln(os.Stderr, "shape:", err)
		os.Exit(1)
	}
	if len(complaints) > 0 {
		fmt.Fprintf(
			os.Stderr, "%s\nshape: %d complaints; docs/dev/coding.md says what is allowed\n", strings.Join(complaints, "\n"),
			len(complaints),
		)
		os.Exit(1)
	}
}

// run returns what is wrong with the repository.
func run(root string, write bool) ([]string, error) {
	file := filepath.Join(root, "hack/shape/excess.txt")
	raw, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	excess, header, err := parse(string(raw))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	found, err := measure(root)
	if err != nil {
		return nil, err
	}
	complaints := slices.Concat(found.problems, judge(found, excess, write))
	slices.Sort(complaints)
	if !write || len(complaints) > 0 {
		return complaints, nil
	}
	text := header
	for _, k := range slices.SortedFunc(maps.Keys(found.figures), func(a, b key) int {
		return strings.Compare(a.limit+" "+a.subject, b.limit+" "+b.subject)
	}) {
		if found.figures[k] > limits[k.limit].max {
			text += fmt.Sprintf("%s %s %d\n", k.limit, k.subject, found.figures[k])
		}
	}
	return nil, os.WriteFile(file, []byte(text), 0o644)
}

// parse reads rows of limit, subject and figure, and the comment above them.
func parse(text string) (excess map[key]int, header string, err error) {
	excess = map[key]int{}
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		if len(words) == 0 || strings.HasPrefix(words[0], "#") {
			header += line
			continue
		}
		if len(words) != 3 || limits[words[0]].what == "" {
			return nil, "", fmt.Errorf("%q is not a limit, a name and a figure", line)
		}
		figure, err := strconv.Atoi(words[2])
		if err != nil {
			return nil, "", err
		}
		excess[key{words[0], words[1]}] = figure
	}
	return excess, header, nil
}

// judge compares what was found with what is allowed. To be written is what has fallen, and a name that is new, as long as all figures
// of its limit together have not risen: then the code has moved.
func judge(found *findings, excess map[key]int, write bool) (complaints []string) {
	sums := map[string]int{}
	complain := func(k key, format string, arguments ...any) {
		complaints = append(complaints, k.subject+": "+limits[k.limit].what+": "+fmt.Sprintf(format, arguments...))
	}
	const orWrite = ", or run go run ./hack/shape -write"
	for k, allowed := range excess {
		sums[k.limit] -= allowed
		if _, known := found.figures[k]; !known && !write {
			complain(k, "there is a row in hack/shape/excess.txt, and no such thing: delete it"+orWrite)
		}
	}
	for k, figure := range found.figures {
		l := limits[k.limit]
		over := figure > l.max
		if over {
			sums[k.limit] += figure
		}
		allowed, known := excess[k]
		switch {
		case known && over && figure > allowed:
			complain(k, "%d, %d more than the %d of hack/shape/excess.txt: %s%s", figure, figure-allowed, allowed, l.do, found.details[k])
		case write:
		case !known && over:
			complain(k, "%d, %d more than the limit of %d: %s%s; where code has only moved, run go run ./hack/shape -write",
				figure, figure-l.max, l.max, l.do, found.details[k])
		case known && !over:
			complain(k, "%d, within the limit of %d: delete its row in hack/shape/excess.txt"+orWrite, figure, l.max)
		case figure < allowed:
			complain(k, "%d, fewer than the %d of hack/shape/excess.txt: write the lower figure there"+orWrite, figure, allowed)
		}
	}
	for name, rise := range sums {
		if write && rise > 0 {
			complain(key{name, "all"}, "%d more than in hack/shape/excess.txt; go run ./hack/shape says where", rise)
		}
	}
	return complaints
}
