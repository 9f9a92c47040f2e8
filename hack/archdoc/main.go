// Command archdoc writes the tables of docs/architecture.md that say which rights each role has, and what the operator caches.
//
//	main.go      the page: what is between its markers
//	rights.go    rights: verbs from config, reasons from rights.txt
//	caches.go    caches: what is in them from the cache budget, reasons from caches.txt
package main

import (
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/slipway-dev/slipway/hack/generated"
	"github.com/slipway-dev/slipway/internal/operator"
)

//go:generate go run . -output ../../docs/architecture.md

// root is the root of the project, from here.
const root = "../.."

var (
	//go:embed rights.txt
	rightsText string
	//go:embed caches.txt
	cachesText string
)

func main() { generated.Main("archdoc", render) }

func render() ([]byte, error) {
	roles, err := readRoles(root)
	if err != nil {
		return nil, err
	}
	tables, err := rightsTables(rightsText, roles)
	if err != nil {
		return nil, fmt.Errorf("rights.txt: %w", err)
	}
	if tables["caches"], err = cachesTable(cachesText, operator.Caches()); err != nil {
		return nil, fmt.Errorf("caches.txt: %w", err)
	}
	page, err := os.ReadFile(filepath.Join(root, "docs/architecture.md"))
	if err != nil {
		return nil, err
	}
	return between(string(page), tables)
}

// between puts each table between the markers with its name.
func between(page string, tables map[string]string) ([]byte, error) {
	for name, table := range tables {
		begin, end := fmt.Sprintf("<!-- begin: %s, made by hack/archdoc -->\n", name), fmt.Sprintf("<!-- end: %s -->\n", name)
		before, rest, begins := strings.Cut(page, begin)
		_, after, ends := strings.Cut(rest, end)
		if !begins || !ends {
			return nil, fmt.Errorf("the page has no lines %s%s", begin, end)
		}
		page = before + begin + "\n" + table + "\n" + end + after
	}
	return []byte(page), nil
}

// line is one of a text of reasons: what it is about, and why.
type line struct {
	about []string
	why   string
}

// lines reads a text of reasons, but for comments.
func lines(text string) ([]line, error) {
	var all []line
	for raw := range strings.Lines(text) {
		raw = strings.TrimSpace(raw)
		if raw == "" || strings.HasPrefix(raw, "#") {
			continue
		}
		about, why, found := strings.Cut(raw, ": ")
		if !found {
			return nil, fmt.Errorf("the line says no reason: %s", raw)
		}
		all = append(all, line{strings.Split(about, ", "), why})
	}
	return all, nil
}

// table writes a table in Markdown.
func table(header []string, rows [][]string) string {
	var text strings.Builder
	write := func(cells []string) { text.WriteString("| " + strings.Join(cells, " | ") + " |\n") }
	write(header)
	text.WriteString(strings.Repeat("|---", len(header)) + "|\n")
	for _, row := range rows {
		write(row)
	}
	return text.String()
}
