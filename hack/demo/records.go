package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// recordFiles are what a number is written to, one after the other.
var recordFiles = []string{"first", "second"}

// recordsCommand writes numbers to two files in turn, each when the one before is on the disk, or checks what was written. A
// copy of one moment has in the second file what it has in the first, but for the last number.
func recordsCommand(ctx context.Context, arguments []string, output io.Writer) error {
	if len(arguments) != 2 {
		return errors.New("usage: demo records (write|check) FOLDER")
	}
	switch arguments[0] {
	case "write":
		return writeRecords(ctx, arguments[1])
	case "check":
		return checkRecords(arguments[1], output)
	default:
		return fmt.Errorf("unknown command %q", arguments[0])
	}
}

// Between the two, by name, are files that it takes some time to read: who copies one file after the other reads the second
// one later than the first.
const (
	middleFiles = 40
	middleSize  = 1 << 20
)

// writeRecords goes on where it was, until the context ends.
func writeRecords(ctx context.Context, folder string) error {
	data := noise(middleSize)
	for i := range middleFiles {
		data[0] = byte(i) // no two are the same
		if err := os.WriteFile(filepath.Join(folder, fmt.Sprintf("middle-%02d", i)), data, 0o644); err != nil {
			return err
		}
	}
	var files []*os.File
	for _, name := range recordFiles {
		file, err := os.OpenFile(filepath.Join(folder, name), os.O_CREATE|os.O_WRONLY|os.O_APPEND|os.O_SYNC, 0o644)
		if err != nil {
			return err
		}
		defer file.Close()
		files = append(files, file)
	}
	n, err := countRecords(filepath.Join(folder, recordFiles[1]))
	if err != nil {
		return err
	}
	first, err := countRecords(filepath.Join(folder, recordFiles[0]))
	if err != nil {
		return err
	}
	for ; ctx.Err() == nil; n++ {
		for i, file := range files {
			if i == 0 && first > n {
				continue // written before it was ended
			}
			if _, err := fmt.Fprintln(file, n); err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(time.Millisecond):
		}
	}
	return nil
}

// checkRecords prints how many numbers there are, and fails where they are not those of one moment.
func checkRecords(folder string, output io.Writer) error {
	first, err := countRecords(filepath.Join(folder, recordFiles[0]))
	if err != nil {
		return err
	}
	second, err := countRecords(filepath.Join(folder, recordFiles[1]))
	if err != nil {
		return err
	}
	if first != second && first != second+1 {
		return fmt.Errorf("the first file has %d numbers and the second %d: they are not of one moment", first, second)
	}
	fmt.Fprintln(output, first)
	return nil
}

// countRecords is how many numbers a file has, from 0. None may be missing. There may be no file.
func countRecords(path string) (int, error) {
	file, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	defer file.Close()
	n := 0
	scanner := bufio.NewScanner(file)
	for ; scanner.Scan(); n++ {
		if scanner.Text() != strconv.Itoa(n) {
			return 0, fmt.Errorf("%s: line %d is %q", path, n, scanner.Text())
		}
	}
	return n, scanner.Err()
}
