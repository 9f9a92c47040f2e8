// Package generated is what the programs have in common that write a file from a template and from what the code says.
package generated

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"text/template"
)

// Main is the main function of such a program. It writes what render returns into the file that the flag -output names, and ends
// the program with exit code 1 when that fails. Errors begin with the name of the program.
func Main(program string, render func() ([]byte, error)) {
	output := flag.String("output", "", "file to write (required)")
	flag.Parse()
	if err := write(*output, render); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", program, err)
		os.Exit(1)
	}
}

// write leaves a file alone that holds the content already.
func write(output string, render func() ([]byte, error)) error {
	if output == "" {
		return errors.New("-output is required")
	}
	content, err := render()
	if err != nil {
		return err
	}
	if old, err := os.ReadFile(output); err == nil && bytes.Equal(old, content) {
		return nil
	}
	return os.WriteFile(output, content, 0o644)
}

// Fill fills in a template. A key that a map lacks is an error.
func Fill(text string, functions template.FuncMap, data any) ([]byte, error) {
	parsed, err := template.New("template").Option("missingkey=error").Funcs(functions).Parse(text)
	if err != nil {
		return nil, fmt.Errorf("read the template: %w", err)
	}
	var out bytes.Buffer
	if err := parsed.Execute(&out, data); err != nil {
		return nil, fmt.Errorf("fill in the template: %w", err)
	}
	return out.Bytes(), nil
}
