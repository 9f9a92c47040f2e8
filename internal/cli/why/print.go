package why

import (
	"fmt"
	"io"
	"strings"

	"github.com/slipway-dev/slipway/internal/cli/command"
	"github.com/slipway-dev/slipway/internal/health"
)

// printWhy writes the tree of causes, indented.
func printWhy(out io.Writer, view whyView) error {
	text := &strings.Builder{}
	fmt.Fprintln(text, headline(view))
	printBelow(text, "", view.node)
	if len(view.Causes) == 0 && len(view.Events) == 0 && view.State == health.Healthy {
		fmt.Fprintln(text, "Nothing is wrong.")
	}
	if err := printDetails(text, view); err != nil {
		return err
	}
	if view.Other != "" {
		fmt.Fprintf(text, "A Gateway of the Gateway API has the same name: kubectl slipway why %s\n", command.Printable(view.Other))
	}
	fmt.Fprint(text, notLookedAt(view.Unreadable, view.Unanswered))
	_, err := io.WriteString(out, text.String())
	return err
}

// notLookedAt names what could not be read, on lines of their own.
func notLookedAt(unreadable, unanswered []string) string {
	text := ""
	if len(unreadable) > 0 {
		text += fmt.Sprintf("Not looked at, because you may not read it: %s\n", command.Printable(strings.Join(unreadable, ", ")))
	}
	if len(unanswered) > 0 {
		text += fmt.Sprintf("Not looked at, because it could not be read: %s\n", command.Printable(strings.Join(unanswered, ", ")))
	}
	return text
}

// printBelow writes what belongs below a node: its warnings, its log, and its causes.
func printBelow(text *strings.Builder, indent string, n node) {
	var items []func(first, rest string)
	for _, event := range n.Events {
		items = append(items, func(first, _ string) {
			times := ""
			if event.Count > 1 {
				times = fmt.Sprintf(", %d times", event.Count)
			}
			fmt.Fprintf(text, "%swarning %s (%s ago%s): %s\n", first, event.Reason, event.age, times, event.Message)
		})
	}
	if n.Log != nil && (len(n.Log.Lines) > 0 || n.Log.Error != "") {
		items = append(items, func(first, rest string) { printLog(text, first, rest, n.Log) })
	}
	for _, cause := range n.Causes {
		items = append(items, func(first, rest string) {
			object := cause.Object
			if cause.Alike > 0 {
				object += fmt.Sprintf(" (and %d more)", cause.Alike)
			}
			fmt.Fprintf(text, "%s%s: %s\n", first, object, command.Because(cause.Reason, cause.Message))
			printBelow(text, rest, cause)
		})
	}
	for i, item := range items {
		if i == len(items)-1 {
			item(indent+"└─ ", indent+"   ")
		} else {
			item(indent+"├─ ", indent+"│  ")
		}
	}
}

func printLog(text *strings.Builder, first, rest string, log *logView) {
	which := "of"
	if log.Previous {
		which = "of the previous run of"
	}
	if log.Error != "" {
		fmt.Fprintf(text, "%sthe log %s container %q cannot be read: %s\n", first, which, log.Container, log.Error)
		return
	}
	fmt.Fprintf(text, "%slast log lines %s container %q:\n", first, which, log.Container)
	for _, line := range log.Lines {
		fmt.Fprintf(text, "%s  %s\n", rest, line)
	}
}
