package webapp

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"

	"k8s.io/utils/lru"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/controller/webapp/desired"
	"github.com/slipway-dev/slipway/internal/kit"
)

// templateMemory bounds how many stored templates are remembered: entries of some KiB.
const templateMemory = 4096

// names remembers what specs and revisions are called: a name is a hash of the pod
// template in canonical JSON, which is costly to make in every reconcile. Forgetting costs that
// again, nothing else.
type names struct {
	// known is what specs are called, by the UID of the WebApp.
	known *lru.Cache
	// stored is what stored revisions are called, by the UID of their object: what is stored
	// cannot be changed.
	stored *lru.Cache
	// templates are the stored templates that were read, and what is unsafe about them, by the
	// same UID.
	templates *lru.Cache
}

// named is what one spec is called.
type named struct {
	// sum identifies the spec and the configuration.
	sum [sha256.Size]byte
	// revision is the name of the revision, intent identifies what the user asks for,
	// specIntent what the spec alone does.
	revision, intent, specIntent string
}

func newNames() *names {
	return &names{known: lru.New(kit.Memory), stored: lru.New(kit.Memory), templates: lru.New(templateMemory)}
}

// nameFor names what a scope's spec and config ask for.
func (n *names) nameFor(s *scope) (named, error) {
	raw, err := json.Marshal(s.app.Spec)
	if err != nil {
		return named{}, fmt.Errorf("encode the spec of WebApp %q: %w", s.app.Name, err)
	}
	sum := sha256.Sum256(append(raw, s.config.hash...))
	if known, ok := n.known.Get(s.app.UID); ok && known.(named).sum == sum {
		return known.(named), nil
	}
	name := named{sum: sum}
	if name.revision, err = desired.RevisionOf(s.app.Spec, s.config.hash).Name(s.app); err != nil {
		return named{}, err
	}
	if name.intent, err = desired.Intent(s.app.Spec, s.config.hash); err != nil {
		return named{}, err
	}
	if name.specIntent, err = desired.Intent(s.app.Spec, ""); err != nil {
		return named{}, err
	}
	n.known.Add(s.app.UID, name)
	return name, nil
}

// ofStored is what this release calls a stored revision: what a spec that asks for the
// same pods is called, too.
func (n *names) ofStored(app *slipwayv1alpha1.WebApp, stored storedRevision) (string, error) {
	if known, ok := n.stored.Get(stored.object.UID); ok {
		return known.(string), nil
	}
	name, err := stored.Name(app)
	if err != nil {
		return "", err
	}
	n.stored.Add(stored.object.UID, name)
	return name, nil
}

// readTemplate is a stored template, not to be changed.
type readTemplate struct {
	*desired.PodTemplate
	// refused is the field by which it may do too much, or nothing.
	refused string
	// misordered reports whether a variable in it comes before one that it refers to.
	misordered bool
}

// templateOf reads the template of a revision, and tells what is unsafe about it.
func (n *names) templateOf(app *slipwayv1alpha1.WebApp, revision namedRevision) (readTemplate, error) {
	if known, ok := n.templates.Get(revision.stored); ok {
		return known.(readTemplate), nil
	}
	template, err := desired.StoredTemplate(app, revision.Revision)
	if err != nil {
		return readTemplate{}, err
	}
	read := readTemplate{PodTemplate: template, misordered: !desired.ResolvesEnv(template)}
	if len(revision.Template) > 0 {
		read.refused = desired.Unsafe(app, revision.Revision, template)
	}
	if revision.stored != "" {
		n.templates.Add(revision.stored, read)
	}
	return read, nil
}
