package supervisor

import (
	"bytes"
	"compress/flate"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/version"
	kjson "sigs.k8s.io/json"

	"github.com/slipway-dev/slipway/internal/monitor/change"
)

// definition is what is kept of a CustomResourceDefinition.
type definition struct {
	uid         types.UID
	name        string
	group       string
	resource    string
	kind        string
	namespaced  bool
	created     time.Time
	generation  int64
	established bool
	// problem says why it cannot be followed, whatever its conditions say.
	problem  string
	versions []servedVersion
}

// servedVersion is a version that the API server serves.
type servedVersion struct {
	name    string
	storage bool
	schema  packed
	content digest
	// noStatus reports whether its objects have no status.
	noStatus bool
}

// digest tells one schema from another.
type digest [16]byte

// packed is a compressed schema. Large definitions have megabytes of schema, which are needed once in a while.
type packed []byte

// rawDefinition is the part of a CustomResourceDefinition that is read.
type rawDefinition struct {
	Metadata struct {
		Name              string    `json:"name"`
		UID               types.UID `json:"uid"`
		Generation        int64     `json:"generation"`
		CreationTimestamp time.Time `json:"creationTimestamp"`
	} `json:"metadata"`
	Spec struct {
		Group string `json:"group"`
		Scope string `json:"scope"`
		Names struct {
			Plural string `json:"plural"`
			Kind   string `json:"kind"`
		} `json:"names"`
		PreserveUnknownFields bool `json:"preserveUnknownFields"`
		Versions              []struct {
			Name    string `json:"name"`
			Served  bool   `json:"served"`
			Storage bool   `json:"storage"`
			Schema  struct {
				OpenAPIV3Schema json.RawMessage `json:"openAPIV3Schema"`
			} `json:"schema"`
			Subresources struct {
				Status *struct{} `json:"status"`
			} `json:"subresources"`
		} `json:"versions"`
	} `json:"spec"`
	Status struct {
		Conditions []struct {
			Type   string `json:"type"`
			Status string `json:"status"`
		} `json:"conditions"`
	} `json:"status"`
}

// readDefinition reads a definition as the API server sent it.
func readDefinition(object Object, packer *packer) (definition, error) {
	if object.Oversized {
		// Its name has the resource and the group. Nothing more is needed to say that it is not followed.
		resource, group, _ := strings.Cut(object.Name, ".")
		return definition{
			uid: object.UID, name: object.Name, group: group, resource: resource, problem: "its definition is too large to be read",
		}, nil
	}
	raw := rawDefinition{}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(object.Raw, &raw); err != nil {
		return definition{}, fmt.Errorf("read the definition %q: %w", object.Name, err)
	}
	read := definition{
		uid: raw.Metadata.UID, name: raw.Metadata.Name, created: raw.Metadata.CreationTimestamp, generation: raw.Metadata.Generation,
		group: raw.Spec.Group, resource: raw.Spec.Names.Plural, kind: raw.Spec.Names.Kind, namespaced: raw.Spec.Scope == "Namespaced",
	}
	for _, condition := range raw.Status.Conditions {
		if condition.Type == "Established" && condition.Status == "True" {
			read.established = true
		}
	}
	for _, v := range raw.Spec.Versions {
		if !v.Served {
			continue
		}
		if !isName(v.Name) {
			read.problem = "the name of a version is no name"
			continue
		}
		content := sha256.Sum256(v.Schema.OpenAPIV3Schema)
		one := servedVersion{name: v.Name, storage: v.Storage, schema: packer.pack(v.Schema.OpenAPIV3Schema)}
		copy(one.content[:], content[:])
		if one.noStatus = hasNoStatus(v.Schema.OpenAPIV3Schema, v.Subresources.Status != nil,
			raw.Spec.PreserveUnknownFields); one.noStatus {
			one.content[0] ^= 1 // it is read from more than the schema, and counts as a change of that
		}
		read.versions = append(read.versions, one)
	}
	if !isName(read.group) || !isName(read.resource) {
		read.problem = "its group or its resource is no name"
	}
	return read, nil
}

// isName reports whether a text can be a part of a path as it is. The API server takes no others.
func isName(text string) bool { return len(validation.IsDNS1123Subdomain(text)) == 0 }

// groupResource is what the definition defines.
func (d definition) groupResource() schema.GroupResource {
	return schema.GroupResource{Group: d.group, Resource: d.resource}
}

// choose returns the version that is followed: the one that is stored, because it is read without a conversion, or else the
// highest that is served. There is none when no version is served.
func (d definition) choose() (servedVersion, bool) {
	var best servedVersion
	for _, v := range d.versions {
		if v.storage {
			return v, true
		}
		if best.name == "" || version.CompareKubeAwareVersionStrings(v.name, best.name) > 0 {
			best = v
		}
	}
	return best, best.name != ""
}

// at returns the kind at a version.
func (d definition) at(version string) change.Kind {
	return change.Kind{
		Group: d.group, Version: version, Kind: d.kind, Resource: d.resource, Namespaced: d.namespaced, Definition: d.uid,
	}
}

// packer compresses schemas, one after another. The zero value is ready. It needs a megabyte, so there is one for all.
type packer struct{ writer *flate.Writer }

func (p *packer) pack(schema []byte) packed {
	if len(schema) == 0 {
		return nil
	}
	var out bytes.Buffer
	if p.writer == nil {
		p.writer, _ = flate.NewWriter(&out, flate.BestSpeed) // fails for a level that does not exist only
	} else {
		p.writer.Reset(&out)
	}
	_, _ = p.writer.Write(schema) // a buffer takes everything
	_ = p.writer.Close()
	return bytes.Clone(out.Bytes())
}

// errPacked cannot happen: what is unpacked was packed here.
var errPacked = errors.New("a packed schema cannot be read")

func (p packed) unpack() ([]byte, error) {
	if p == nil {
		return nil, nil
	}
	schema, err := io.ReadAll(flate.NewReader(bytes.NewReader(p)))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errPacked, err)
	}
	return schema, nil
}
