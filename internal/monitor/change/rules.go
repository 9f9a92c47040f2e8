package change

import "fmt"

// rules are paths that somebody configured, as a tree. The end of a path stands for everything below it.
type rules struct {
	fields map[string]*rules
	// each is what follows [*]: any item of a list, any value of a map.
	each *rules
	end  bool
}

// newRules reads paths such as .spec.users[*].login or .metadata.annotations["example.com/login"].
func newRules(paths []string) (*rules, error) {
	root := &rules{}
	for _, path := range paths {
		steps, err := parsePath(path)
		if err != nil {
			return nil, fmt.Errorf("%q is not the path of a field: %w", path, err)
		}
		if len(steps) == 0 {
			return nil, fmt.Errorf("%q is the path of whole objects", path)
		}
		at := root
		for _, step := range steps {
			if at, err = at.add(step); err != nil {
				return nil, fmt.Errorf("%q is not the path of fields: %w", path, err)
			}
		}
		at.end = true
	}
	return root, nil
}

func (r *rules) add(s step) (*rules, error) {
	switch s.typ {
	case eachStep:
		if r.each == nil {
			r.each = &rules{}
		}
		return r.each, nil
	case nameStep:
		if r.fields == nil {
			r.fields = map[string]*rules{}
		}
		if r.fields[s.name] == nil {
			r.fields[s.name] = &rules{}
		}
		return r.fields[s.name], nil
	}
	return nil, fmt.Errorf("of a list only all items can be named, with [*]")
}

// field returns what the rules say of a member of an object.
func field(at []*rules, name string) []*rules {
	var result []*rules
	for _, r := range at {
		if next := r.fields[name]; next != nil {
			result = append(result, next)
		}
		if r.each != nil {
			result = append(result, r.each)
		}
	}
	return result
}

// item returns what the rules say of the items of a list. A rule that forgets [*] goes on for each of them.
func item(at []*rules) []*rules {
	if len(at) == 0 {
		return nil
	}
	result := at[:len(at):len(at)]
	for _, r := range at {
		if r.each != nil {
			result = append(result, r.each)
		}
	}
	return result
}

func ends(at []*rules) bool {
	for _, r := range at {
		if r.end {
			return true
		}
	}
	return false
}
