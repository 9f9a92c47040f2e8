// Command affected says what `make test` has to run: the packages and suites that the changes since a proven commit can
// affect, and a share of all others.
//
//	main.go      the commit to compare with, and what is printed
//	code.go      what packages import and which files of others they read, from their sources
//	table.go     reads suites.txt: what the suites use besides packages, and files that no package has
//	choose.go    who is affected, and the share
//	suites.txt   the table
//
// It prints a line for each suite: the target of make and its variables, with tabs between them. On standard error it says
// why. The sources are read instead of asking `go list`, which knows one set of build tags at a time, and not which files
// of the repository a test opens.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

func main() {
	direct := flag.Bool("changed", false,
		"print the folders of the packages that have changed themselves, for make check; BASE names the commit")
	tested := flag.Bool("tests", false, "with -changed: only those with tests that test-go runs")
	flag.Parse()
	if err := run(*direct, *tested, os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "affected:", err)
		os.Exit(1)
	}
}

func run(direct, tested bool, out, log io.Writer) error {
	root, err := git("rev-parse", "--show-toplevel")
	if err != nil {
		return err
	}
	base, why := findBase(root)
	var changed []string
	if base != "" {
		if changed, err = changedSince(root, base); err != nil {
			return err
		}
		why = fmt.Sprintf("%d files differ from %.12s, %s", len(changed), base, why)
	}
	c, err := readCode(os.DirFS(root), lines(git("-C", root, "ls-files", "--cached", "--others", "--exclude-standard")), changed)
	if err != nil {
		return err
	}
	if direct {
		for _, folder := range c.touched(changed, tested) {
			fmt.Fprintln(out, "./"+folder)
		}
		return nil
	}
	text, err := os.ReadFile(filepath.Join(root, "hack/affected/suites.txt"))
	if err != nil {
		return err
	}
	t, err := readTable(string(text))
	if err != nil {
		return err
	}
	draw, err := drawn(os.Getenv("DRAW"), os.Getenv("SEED"))
	if err != nil {
		return err
	}
	p := choose(c, t, changed, base == "", draw)
	p.explain(log, why)
	fmt.Fprint(out, p)
	return nil
}

// findBase returns the commit that changes are compared with, and what it is. Everything runs where there is none.
func findBase(root string) (base, what string) {
	if os.Getenv("FULL") != "" {
		return "", "FULL asks for everything"
	}
	if base := os.Getenv("BASE"); base != "" {
		return base, "which BASE names"
	}
	head, err := git("rev-parse", "HEAD")
	if err != nil {
		return "", "there is no commit"
	}
	if base, err := git("merge-base", "HEAD", "origin/main"); err == nil && base != head {
		return base, "where this branch left origin/main"
	}
	// In a shallow clone the commit may be missing.
	if proven, err := os.ReadFile(filepath.Join(root, ".ci/proven")); err == nil {
		if base, err := git("rev-parse", "--verify", "--quiet", strings.TrimSpace(string(proven))+"^{commit}"); err == nil {
			return base, "the commit in .ci/proven"
		}
	}
	// What has a tag is compared with the tag before.
	if tag, err := git("describe", "--tags", "--abbrev=0", "--match", "v*", "HEAD^"); err == nil {
		return tag, "the last tag"
	}
	return "", "no commit is known to be proven"
}

// changedSince returns the files that differ from a commit, tracked or not, from the root.
func changedSince(root, base string) ([]string, error) {
	differ, err := git("-C", root, "diff", "--name-only", "--no-renames", base)
	if err != nil {
		return nil, err
	}
	untracked, err := git("-C", root, "ls-files", "--others", "--exclude-standard")
	if err != nil {
		return nil, err
	}
	changed := append(lines(differ, nil), lines(untracked, nil)...)
	slices.Sort(changed)
	return slices.Compact(changed), nil
}

// drawn returns which share to run: DRAW, or what follows from SEED, which is the hash of the committed tree unless somebody
// repeats a run.
func drawn(draw, seed string) (int, error) {
	if draw == "" {
		n, err := strconv.ParseUint(seed, 16, 64)
		if err != nil {
			n = uint64(hash(seed))
		}
		return int(n % shares), nil
	}
	n, err := strconv.ParseUint(draw, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("DRAW is %q; it must be a number", draw)
	}
	return int(n % shares), nil
}

func git(args ...string) (string, error) {
	output, err := exec.Command("git", args...).Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w", strings.Join(args, " "), err)
	}
	return strings.TrimSpace(string(output)), nil
}

// lines returns the lines of a command's output, none where it failed.
func lines(output string, err error) []string {
	if err != nil || output == "" {
		return nil
	}
	return strings.Split(output, "\n")
}
