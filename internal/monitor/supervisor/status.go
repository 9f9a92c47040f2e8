package supervisor

import (
	"encoding/json"

	kjson "sigs.k8s.io/json"
)

// rawStatus is the part of a schema that says whether an object can have a status.
type rawStatus struct {
	Preserve   bool `json:"x-kubernetes-preserve-unknown-fields"`
	Properties struct {
		Status *struct {
			Type       string                     `json:"type"`
			Preserve   bool                       `json:"x-kubernetes-preserve-unknown-fields"`
			Embedded   bool                       `json:"x-kubernetes-embedded-resource"`
			Properties map[string]json.RawMessage `json:"properties"`
			Additional json.RawMessage            `json:"additionalProperties"`
		} `json:"status"`
	} `json:"properties"`
}

// hasNoStatus reports whether a version of a definition has no status: the API server prunes whatever a controller would write there,
// or nothing says that there is one. subresource reports whether the version has the subresource, and preserve whether the definition
// keeps unknown fields everywhere. Of a schema that cannot be read nothing is known.
func hasNoStatus(schema []byte, subresource, preserve bool) bool {
	raw := rawStatus{}
	if len(schema) > 0 && kjson.UnmarshalCaseSensitivePreserveInts(schema, &raw) != nil {
		return false
	}
	status := raw.Properties.Status
	if status == nil {
		return !subresource || !preserve && !raw.Preserve
	}
	hasRoom := status.Preserve || preserve || status.Embedded || len(status.Properties) > 0 ||
		len(status.Additional) > 0 && string(status.Additional) != "false"
	return status.Type == "object" && !hasRoom
}
