// Package page serves the files of a web page.
package page

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"path"
	"strings"

	"github.com/slipway-dev/slipway/internal/web/failure"
)

// Page serves the files of a web page from memory. There is nothing in them that is secret, so it needs no token.
type Page struct {
	files map[string]*file
	// missing is the answer for everything else.
	missing *failure.Failure
}

type file struct {
	media, tag string
	// content is the file, and compressed the same as gzip.
	content, compressed []byte
}

// mediaOf has the types of files that a page may have. The system's own table differs from machine to machine.
func mediaOf(name string) string {
	switch path.Ext(name) {
	case ".html":
		return "text/html; charset=utf-8"
	case ".js":
		return "text/javascript; charset=utf-8"
	case ".css":
		return "text/css; charset=utf-8"
	case ".svg":
		return "image/svg+xml"
	case ".txt":
		return "text/plain; charset=utf-8"
	default:
		return "application/octet-stream"
	}
}

// New reads the files: index.html, and what it needs. Missing is the answer for what is not among them.
func New(files fs.FS, missing *failure.Failure) (*Page, error) {
	p := &Page{files: map[string]*file{}, missing: missing}
	err := fs.WalkDir(files, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		content, err := fs.ReadFile(files, name)
		if err != nil {
			return err
		}
		compressed, err := compress(content)
		hash := sha256.Sum256(content)
		p.files[name] = &file{media: mediaOf(name), tag: hex.EncodeToString(hash[:12]), content: content, compressed: compressed}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read the page: %w", err)
	}
	if p.files["index.html"] == nil {
		return nil, errors.New("the page has no index.html")
	}
	return p, nil
}

func compress(content []byte) ([]byte, error) {
	into := &bytes.Buffer{}
	w, err := gzip.NewWriterLevel(into, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(content); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return into.Bytes(), nil
}

// ServeHTTP serves one of the files.
func (p *Page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name := strings.TrimPrefix(r.URL.Path, "/")
	if name == "" {
		name = "index.html"
	}
	file := p.files[name]
	if file == nil {
		failure.Refuse(w, p.missing)
		return
	}
	header, content, tag := w.Header(), file.content, `"`+file.tag+`"`
	header.Set("Content-Type", file.media)
	// The browser asks each time whether it has the newest, so a new monitor never meets an old page.
	header.Set("Cache-Control", "no-cache")
	header.Set("Vary", "Accept-Encoding")
	if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		header.Set("Content-Encoding", "gzip")
		content, tag = file.compressed, `"`+file.tag+`-gzip"`
	}
	header.Set("ETag", tag)
	if r.Header.Get("If-None-Match") == tag {
		header.Del("Content-Encoding")
		w.WriteHeader(http.StatusNotModified)
		return
	}
	_, _ = w.Write(content)
}
