// Package web has the files of the monitor's web page. They are made of the sources in src by hack/web.sh, and committed, so
// building the monitor needs neither npm nor a network.
//
//   - src: the sources; main.tsx is where to begin
//   - dist: what is served
//   - package.json, package-lock.json: libraries, pinned, with their checksums
//   - dist.sum: of which sources dist was made
package web

import (
	"embed"
	"io/fs"
)

//go:embed dist
var dist embed.FS

// Files returns the files that are served: index.html, and assets beside it.
func Files() fs.FS {
	files, err := fs.Sub(dist, "dist")
	if err != nil {
		panic(err) // the folder is embedded above
	}
	return files
}
