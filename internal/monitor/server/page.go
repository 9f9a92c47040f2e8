package server

import (
	"errors"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strings"
)

// page serves the files of the web page. There is nothing in them that is secret, so it needs no token.
type page struct{ files fs.FS }

func newPage(files fs.FS) (*page, error) {
	if !isFile(files, "index.html") {
		return nil, errors.New("the page has no index.html")
	}
	return &page{files}, nil
}

func (p *page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name := strings.TrimPrefix(r.URL.Path, "/")
	if name == "" {
		name = "index.html"
	}
	if !fs.ValidPath(name) || !isFile(p.files, name) {
		refuse(w, notFound())
		return
	}
	media := mime.TypeByExtension(path.Ext(name))
	if path.Ext(name) == ".js" {
		media = "text/javascript; charset=utf-8"
	}
	w.Header().Set("Content-Type", media)
	w.Header().Set("Cache-Control", "no-cache")
	w.Header().Set("Vary", "Accept-Encoding")
	if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") && isFile(p.files, name+".gz") {
		w.Header().Set("Content-Encoding", "gzip")
		name += ".gz"
	}
	content, err := fs.ReadFile(p.files, name)
	if err != nil {
		refuse(w, notFound())
		return
	}
	_, _ = w.Write(content)
}
