// Package lockedbuffer collects what is written by one goroutine or process while a test reads it.
package lockedbuffer

import (
	"bytes"
	"strings"
	"sync"
)

// Buffer is a buffer that several goroutines may write and read. The zero value is empty and ready.
type Buffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write appends to the text. It never fails.
func (b *Buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

// String is all that has been written so far.
func (b *Buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// Lines is the text by lines, without their ends. Of an empty text there are none.
func (b *Buffer) Lines() []string {
	text := strings.TrimSuffix(b.String(), "\n")
	if text == "" {
		return nil
	}
	return strings.Split(text, "\n")
}
