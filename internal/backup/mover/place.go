package mover

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"unicode"

	"k8s.io/apimachinery/pkg/api/validation"
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

// ParseDestination parses s3://<bucket>/<path> or pvc://<claim>/<path>. What it takes is a place of its own: it names one bucket
// or claim, and a path that cannot lead out of it. Of a path the schema of the API takes the same.
func ParseDestination(text string) (Place, error) {
	scheme, rest, found := strings.Cut(text, "://")
	name, after, _ := strings.Cut(rest, "/")
	at := strings.TrimSuffix(after, "/")
	if !found || (scheme != "s3" && scheme != "pvc") || name == "" {
		return Place{}, fmt.Errorf("%q is neither s3://<bucket>/<prefix> nor pvc://<claim>/<path>", text)
	}
	if problems := validation.NameIsDNSSubdomain(name, false); len(problems) > 0 {
		return Place{}, fmt.Errorf("%q names no bucket or claim: a name has lower case letters, digits, '-' and '.', and a letter or "+
			"digit at both ends of each part", text)
	}
	for element := range strings.SplitSeq(at, "/") {
		if after != "" && !isElement(element) {
			return Place{}, fmt.Errorf(
				"%q has a path with an empty element, '.' or '..', or something else than letters, digits, '-', '_' and '.'", text,
			)
		}
	}
	if scheme == "s3" {
		return Place{Bucket: name, Path: at}, nil
	}
	return Place{Claim: name, Path: at}, nil
}

// isElement reports whether a text may be an element of a path: it names something below, whoever reads it.
func isElement(text string) bool {
	return strings.Trim(text, ".") != "" && !strings.ContainsFunc(text, func(r rune) bool {
		return r > unicode.MaxASCII || (!unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("-_.", r))
	})
}

// Repository is the place of the repository of one Backup.
func (p Place) Repository(namespace, name string) Place {
	p.Path = path.Join(p.Path, namespace, name)
	return p
}

// CheckOwnClaim refuses a place on one of the volumes that are backed up: each copy would hold the copies before it, and who
// loses the volume loses them too.
func CheckOwnClaim(place Place, claims ...string) error {
	if place.Claim != "" && slices.Contains(claims, place.Claim) {
		return fmt.Errorf("pvc://%s is on PersistentVolumeClaim %q, which spec.source backs up: name a bucket or another claim",
			place.Claim, place.Claim)
	}
	return nil
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
	if kinds[kind] == "" || len(validation.NameIsDNSSubdomain(name, false)) > 0 {
		return Source{}, fmt.Errorf(
			"%q is neither the name of a PersistentVolumeClaim nor pvc/, webapp/, statefulset/ or deployment/ and a name", text,
		)
	}
	return Source{Kind: kinds[kind], Name: name}, nil
}

// Claims are the claims that a source means, as far as its text tells.
func (s Source) Claims() []string {
	if s.Kind == SourceClaim {
		return []string{s.Name}
	}
	return nil
}

// Text is how spec.source names it with its kind, such as pvc/shop-data.
func (s Source) Text() string {
	kind := strings.ToLower(string(s.Kind))
	if s.Kind == SourceClaim {
		kind = "pvc"
	}
	return kind + "/" + s.Name
}

// String names the object.
func (s Source) String() string { return fmt.Sprintf("%s %q", s.Kind, s.Name) }
