package engine

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
)

// The library keeps of each file name, type, permissions, owner, time and content. The rest is kept in a file beside the
// tree: its first line says what the snapshot holds, each further line tells of one path.
//
// The root folder of a snapshot holds the two, under these names.
const (
	dataName       = "data"
	attributesName = "attributes.jsonl"
)

// attributesVersion changes when an older program could not make sense of the file.
const attributesVersion = 1

// attributesHeader is the first line.
type attributesHeader struct {
	Version int   `json:"version"`
	Stats   Stats `json:"stats"`
	// Lines is how many follow.
	Lines int `json:"lines"`
}

// attributes are what is kept of a path beside the tree.
type attributes struct {
	// Path is relative to the source, each element as encodeName returns it. The source itself is ".".
	Path string `json:"path"`
	// Extended holds the extended attributes, ACLs among them.
	Extended map[string][]byte `json:"xattr,omitempty"`
	// Link is the same number for all paths that are one file.
	Link int `json:"link,omitempty"`
	// Pipe describes a named pipe, which the tree does not hold.
	Pipe *pipe `json:"pipe,omitempty"`
}

type pipe struct {
	Mode    uint32 `json:"mode"` // permission bits as in chmod(2)
	Owner   uint32 `json:"uid"`
	Group   uint32 `json:"gid"`
	ModTime int64  `json:"mtime"` // nanoseconds since 1970
}

// inode identifies a file whatever its path.
type inode struct{ device, number uint64 }

// collector gathers attributes while the library reads the source, from several goroutines.
type collector struct {
	mu    sync.Mutex
	found map[string]*attributes
	links map[inode][]string // paths of files that have more than one
}

func newCollector() *collector {
	return &collector{found: map[string]*attributes{}, links: map[inode][]string{}}
}

func (c *collector) attributesOf(path string) *attributes {
	a := c.found[path]
	if a == nil {
		a = &attributes{Path: path}
		c.found[path] = a
	}
	return a
}

func (c *collector) extended(path string, values map[string][]byte) {
	if len(values) == 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.attributesOf(path).Extended = values
}

func (c *collector) pipe(path string, p pipe) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.attributesOf(path).Pipe = &p
}

func (c *collector) link(path string, file inode) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.links[file] = append(c.links[file], path)
}

// forget drops a path that turned out not to be in the snapshot.
func (c *collector) forget(path string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.found, path)
	for file, paths := range c.links {
		if i := slices.Index(paths, path); i >= 0 {
			c.links[file] = slices.Delete(paths, i, i+1)
			return
		}
	}
}

// lines returns what was gathered, in the order of the paths, so that an unchanged source gives the same bytes.
func (c *collector) lines() []attributes {
	c.mu.Lock()
	defer c.mu.Unlock()
	groups := make([][]string, 0, len(c.links))
	for _, paths := range c.links {
		if len(paths) < 2 {
			continue // the other paths of the file are outside of the source
		}
		slices.Sort(paths)
		groups = append(groups, paths)
	}
	slices.SortFunc(groups, func(a, b []string) int { return cmp.Compare(a[0], b[0]) })
	for i, paths := range groups {
		for _, path := range paths {
			c.attributesOf(path).Link = i + 1
		}
	}
	lines := make([]attributes, 0, len(c.found))
	for _, a := range c.found {
		lines = append(lines, *a)
	}
	slices.SortFunc(lines, func(a, b attributes) int { return cmp.Compare(a.Path, b.Path) })
	return lines
}

// writeAttributes writes the file.
func writeAttributes(w io.Writer, stats Stats, lines []attributes) error {
	encoder := json.NewEncoder(w)
	if err := encoder.Encode(attributesHeader{Version: attributesVersion, Stats: stats, Lines: len(lines)}); err != nil {
		return err
	}
	for _, line := range lines {
		if err := encoder.Encode(line); err != nil {
			return err
		}
	}
	return nil
}

// readAttributes reads the file, and calls each for every line after the first.
func readAttributes(r io.Reader, each func(attributes) error) (attributesHeader, error) {
	decoder := json.NewDecoder(bufio.NewReader(r))
	var header attributesHeader
	if err := decoder.Decode(&header); err != nil {
		return header, fmt.Errorf("%s: %w", attributesName, err)
	}
	if header.Version != attributesVersion {
		return header, fmt.Errorf("%s has version %d, this program knows %d", attributesName, header.Version, attributesVersion)
	}
	lines := 0
	for ; ; lines++ {
		var line attributes
		err := decoder.Decode(&line)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return header, fmt.Errorf("%s: %w", attributesName, err)
		}
		if err := each(line); err != nil {
			return header, err
		}
	}
	if lines != header.Lines {
		return header, fmt.Errorf("%s has %d lines, it should have %d", attributesName, lines, header.Lines)
	}
	return header, nil
}
