package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
)

// errDump is how a dump fails that is told to.
var errDump = errors.New("the table orders cannot be read: no space left on device")

// dumpCommand writes what a database might: so many lines, the same each time, with the value of DUMP_NOTE in the first one.
// Told to, it fails after a share of them: tests of backups run it.
func dumpCommand(arguments []string, getenv func(string) string, output io.Writer) error {
	usage := errors.New("usage: demo dump LINES [PERCENT-UNTIL-IT-FAILS]")
	if len(arguments) < 1 || len(arguments) > 2 {
		return usage
	}
	lines, err := strconv.ParseUint(arguments[0], 10, 32)
	if err != nil {
		return usage
	}
	last := lines
	if len(arguments) == 2 {
		percent, err := strconv.ParseUint(arguments[1], 10, 7)
		if err != nil || percent > 100 {
			return usage
		}
		last = lines * percent / 100
	}
	w := bufio.NewWriter(output)
	_, err = fmt.Fprintf(w, "-- %d lines, note %q, user %d\n", lines, getenv("DUMP_NOTE"), os.Getuid())
	for i := uint64(0); i < last && err == nil; i++ {
		_, err = fmt.Fprintf(w, "INSERT INTO orders VALUES (%d, 'customer %d', %d);\n", i, i*7919%10007, i*104729%1000003)
	}
	if err = errors.Join(err, w.Flush()); err != nil {
		return err
	}
	if len(arguments) == 2 {
		return errDump
	}
	return nil
}
