package webapp

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"

	"k8s.io/utils/lru"

	"github.com/slipway-dev/slipway/internal/webapp/desired"
)

// names remembers what specs are called, by the UID of the WebApp: a name is a hash of
// the pod template in canonical JSON, which is costly to make at every pass. Forgetting
// costs that again, nothing else.
type names struct{ known *lru.Cache }

// named is what one spec is called.
type named struct {
	// sum identifies the spec and the configuration.
	sum [sha256.Size]byte
	// revision is the name of the revision, intent identifies what the user asks for.
	revision, intent string
}

func newNames() *names { return &names{known: lru.New(memory)} }

// of names the wanted revision of a scope and its intent.
func (n *names) of(s *scope) (revision, intent string, err error) {
	raw, err := json.Marshal(s.app.Spec)
	if err != nil {
		return "", "", fmt.Errorf("encode the spec of WebApp %q: %w", s.app.Name, err)
	}
	sum := sha256.Sum256(append(raw, s.config.hash...))
	if known, ok := n.known.Get(s.app.UID); ok && known.(named).sum == sum {
		return known.(named).revision, known.(named).intent, nil
	}
	if revision, err = s.wanted.Name(s.app); err != nil {
		return "", "", err
	}
	if intent, err = desired.Intent(s.app.Spec, s.config.hash); err != nil {
		return "", "", err
	}
	n.known.Add(s.app.UID, named{sum: sum, revision: revision, intent: intent})
	return revision, intent, nil
}
