package supervisor

import (
	"errors"
	"io"

	kjson "sigs.k8s.io/json"
)

// maxListMember bounds everything of a list but its items.
const maxListMember = 64 << 10

// listEnd is what a page of a list says besides its items.
type listEnd struct {
	ResourceVersion string `json:"resourceVersion"`
	Continue        string `json:"continue"`
}

// readPage reads one page of a list and gives its items away, one by one. An error of give is returned as it is.
func readPage(from io.Reader, limit int, give func(raw []byte, cut bool) error) (listEnd, error) {
	s := newStream(from)
	if err := s.expect('{'); err != nil {
		return listEnd{}, err
	}
	end, seen := listEnd{}, map[string]bool{}
	for {
		name, last, err := s.member()
		if err != nil {
			return end, err
		}
		if last {
			break
		}
		switch {
		case name != `"items"` && name != `"metadata"`:
			_, _, err = s.value(maxListMember)
			err = unexpected(err)
		case seen[name]:
			err = garbage("a list says %s twice", name)
		case name == `"items"`:
			err = s.items(limit, give)
		default:
			err = s.metadata(&end)
		}
		if err != nil {
			return end, err
		}
		seen[name] = name == `"items"` || name == `"metadata"`
	}
	if !seen[`"metadata"`] {
		return end, garbage("a list without metadata")
	}
	return end, nil
}

// metadata reads the metadata of a list.
func (s *stream) metadata(end *listEnd) error {
	raw, cut, err := s.value(maxListMember)
	if err != nil {
		return unexpected(err)
	}
	if cut {
		return garbage("the metadata of a list are too large")
	}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(raw, end); err != nil {
		return garbage("the metadata of a list: %v", err)
	}
	if end.ResourceVersion == "" {
		return garbage("a list without a resource version")
	}
	return nil
}

// member goes to the next member of an object and returns its name, with quotes. last reports whether there is none.
func (s *stream) member() (name string, last bool, err error) {
	c, err := s.space()
	if err != nil {
		return "", false, unexpected(err)
	}
	switch c {
	case '}':
		s.position++
		return "", true, nil
	case ',':
		s.position++
	}
	if c, err = s.space(); err != nil {
		return "", false, unexpected(err)
	}
	if c != '"' {
		return "", false, garbage("a list has a member without a name")
	}
	raw, cut, err := s.value(maxListMember)
	if err != nil {
		return "", false, unexpected(err)
	}
	if cut {
		return "", false, garbage("a list has a member with a name that is too long")
	}
	name = string(raw)
	return name, false, s.expect(':')
}

// items gives the items of a list away. A list without items may say null.
func (s *stream) items(limit int, give func(raw []byte, cut bool) error) error {
	c, err := s.space()
	if err != nil {
		return unexpected(err)
	}
	if c == 'n' {
		raw, _, err := s.value(maxListMember)
		if err == nil && string(raw) != "null" {
			err = garbage("a list with items that are no list")
		}
		return unexpected(err)
	}
	if err := s.expect('['); err != nil {
		return err
	}
	for {
		c, err := s.space()
		switch {
		case err != nil:
			return unexpected(err)
		case c == ']':
			s.position++
			return nil
		case c == ',':
			s.position++
			continue
		case c != '{':
			return garbage("a list with an item that is no object")
		}
		raw, cut, err := s.value(limit)
		if err != nil {
			return unexpected(err)
		}
		if err := give(raw, cut); err != nil {
			return err
		}
	}
}

// expect takes a delimiter.
func (s *stream) expect(want byte) error {
	got, err := s.delimiter()
	if err != nil {
		return err
	}
	if got != want {
		return garbage("%q instead of %q", got, want)
	}
	return nil
}

// isCut reports whether an answer ended too soon.
func isCut(err error) bool { return errors.Is(err, io.ErrUnexpectedEOF) }
