package mover

import (
	"fmt"
	"path"
	"strings"
)

// Place is where repositories are.
type Place struct {
	// Bucket is that of an S3 destination.
	Bucket string
	// Claim is the PersistentVolumeClaim of another one.
	Claim string
	// Path is the path in the bucket or on the volume, without slashes at its ends.
	Path string
}

// ParseDestination parses s3://<bucket>/<path> or pvc://<claim>/<path>. The schema of the API refuses more than this does.
func ParseDestination(text string) (Place, error) {
	scheme, rest, found := strings.Cut(text, "://")
	name, at, _ := strings.Cut(rest, "/")
	at = strings.TrimSuffix(at, "/")
	if !found || name == "" {
		return Place{}, fmt.Errorf("%q is neither s3://<bucket>/<prefix> nor pvc://<claim>/<path>", text)
	}
	for element := range strings.SplitSeq(at, "/") {
		if at != "" && (element == "" || element == "." || element == "..") {
			return Place{}, fmt.Errorf("%q has an empty element, '.' or '..' in its path", text)
		}
	}
	switch scheme {
	case "s3":
		return Place{Bucket: name, Path: at}, nil
	case "pvc":
		return Place{Claim: name, Path: at}, nil
	default:
		return Place{}, fmt.Errorf("%q is neither s3://<bucket>/<prefix> nor pvc://<claim>/<path>", text)
	}
}

// Of is the place of the repository of one Backup.
func (p Place) Of(namespace, name string) Place {
	p.Path = path.Join(p.Path, namespace, name)
	return p
}

// SourceKind is the kind of what is backed up.
type SourceKind string

// What can be backed up.
const (
	SourceClaim       SourceKind = "PersistentVolumeClaim"
	SourceWebApp      SourceKind = "WebApp"
	SourceStatefulSet SourceKind = "StatefulSet"
	SourceDeployment  SourceKind = "Deployment"
)

// Source is what is backed up.
type Source struct {
	Kind SourceKind
	Name string
}

// ParseSource parses the name of a claim, or pvc/, webapp/, statefulset/ or deployment/ and a name.
func ParseSource(text string) (Source, error) {
	kind, name, found := strings.Cut(text, "/")
	if !found {
		kind, name = "pvc", text
	}
	kinds := map[string]SourceKind{
		"pvc": SourceClaim, "webapp": SourceWebApp, "statefulset": SourceStatefulSet, "deployment": SourceDeployment,
	}
	if kinds[kind] == "" || name == "" || strings.Contains(name, "/") {
		return Source{}, fmt.Errorf("%q is neither the name of a PersistentVolumeClaim nor pvc/, webapp/, statefulset/ or deployment/ and a name", text)
	}
	return Source{Kind: kinds[kind], Name: name}, nil
}

// String names the object.
func (s Source) String() string { return fmt.Sprintf("%s %q", s.Kind, s.Name) }
