package main

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"sync"
)

// maxNote is how long a note may be, in bytes.
const maxNote = 4096

// notes keeps what is posted in a file on a volume: something to lose, and to get back.
type notes struct {
	// folder is that of the volume. Empty: there is none.
	folder string
	mu     sync.Mutex
}

func (n *notes) path() string { return filepath.Join(n.folder, "notes.txt") }

// list shows all notes.
func (n *notes) list(response http.ResponseWriter, _ *http.Request) {
	content, err := os.ReadFile(n.path())
	switch {
	case n.folder == "":
		http.Error(response, "set NOTES_FOLDER to keep notes", http.StatusNotFound)
	case errors.Is(err, os.ErrNotExist):
		fmt.Fprintln(response, "there are no notes")
	case err != nil:
		http.Error(response, err.Error(), http.StatusInternalServerError)
	default:
		_, _ = response.Write(content)
	}
}

// add keeps one more.
func (n *notes) add(response http.ResponseWriter, request *http.Request) {
	if n.folder == "" {
		http.Error(response, "set NOTES_FOLDER to keep notes", http.StatusNotFound)
		return
	}
	note, err := io.ReadAll(http.MaxBytesReader(response, request.Body, maxNote))
	if err != nil {
		http.Error(response, err.Error(), http.StatusRequestEntityTooLarge)
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	file, err := os.OpenFile(n.path(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err == nil {
		_, err = fmt.Fprintf(file, "%s\n", note)
		err = errors.Join(err, file.Close())
	}
	if err != nil {
		http.Error(response, err.Error(), http.StatusInternalServerError)
		return
	}
	fmt.Fprintln(response, "noted")
}
