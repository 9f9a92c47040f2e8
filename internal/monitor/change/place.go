package change

// place is where in an object a value is, and what is known about it because of that.
type place struct {
	// name is that of the field, and for an item that of its list.
	name   string
	schema *Schema
	// path is a hash of the path.
	path uint64
	// secret and noise are what configured paths say about what is below.
	secret, noise []*rules
	// metadata is that of the object, or of one that is embedded. identity is its name and the like: never a secret.
	metadata, identity bool
	// inSchema is a property of a schema.
	inSchema bool
	// condition is an item of a list of conditions.
	condition bool
}

// identities are members of metadata that name an object. They stand in every request, so they are no secrets.
var identities = map[string]bool{
	"name": true, "generateName": true, "namespace": true, "uid": true, "creationTimestamp": true, "deletionTimestamp": true,
}

func (p place) member(name string) place {
	next := place{name: name, schema: p.schema.field(name), path: hashText(p.path, name)}
	if len(p.secret) > 0 {
		next.secret = field(p.secret, name)
	}
	if len(p.noise) > 0 {
		next.noise = field(p.noise, name)
	}
	next.identity = p.metadata && identities[name]
	return next
}

func (p place) item(index int, value *node) place {
	next := place{
		name: p.name, schema: p.schema.item(), secret: item(p.secret), noise: item(p.noise),
		condition: isConditions(p.name),
	}
	// Conditions are told apart by their types: noise in one is then the same noise wherever the condition stands.
	if label := value.memberText("type"); label != "" {
		next.path = hashText(p.path, label)
	} else {
		next.path = hashNumber(p.path, index)
	}
	return next
}
