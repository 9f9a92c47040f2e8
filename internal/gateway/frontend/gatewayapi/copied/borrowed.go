// Package copied says how certificates of other namespaces reach the pods of a Gateway. The operator copies each that a
// ReferenceGrant permits into one Secret beside the pods, and takes it out again with the grant. It copies the certificates
// of authorities, too, which are in ConfigMaps of any namespace, and whom GatewayPolicies of other namespaces let in. The pods read that one Secret, so they need no right in
// another namespace, and none to read ConfigMaps. It also holds what the pods alone have in common. Both sides import this package.
package copied

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
)

const (
	certificateSuffix = ".tls.crt"
	keySuffix         = ".tls.key"
	versionSuffix     = ".version"
	bundleSuffix      = ".ca.crt"
	bundleVersion     = ".ca.version"
	contentSuffix     = ".data"
	contentVersion    = ".data.v"
	// maxPrefix leaves room for the longest suffix.
	maxPrefix = validation.DNS1123SubdomainMaxLength - len(certificateSuffix)
)

// SecretBytes is the length of the secrets under SessionsKey and ReplicasKey. They are no copies: the operator makes each where a
// rule needs it, and keeps it as long. All pods make the key of sessions from the first, and know each other by the second. No copy
// has a key without a dot.
const (
	SessionsKey = "sessions"
	ReplicasKey = "replicas"
	SecretBytes = 32
)

const secretSuffix = "-certificates"

// SecretName is the name of the Secret with the copies, of the name of the Deployment that runs the pods.
func SecretName(deployment string) string { return deployment + secretSuffix }

// ServiceName is the name of the Service that leads to the pods, of the name of the Secret: that of the Deployment. It is empty for
// a Secret of another name.
func ServiceName(secret string) string {
	service, found := strings.CutSuffix(secret, secretSuffix)
	if !found {
		return ""
	}
	return service
}

// Keys are those of a Secret of another namespace in the Secret with the copies: its certificate, its private key, and its
// resourceVersion when they were copied. The version is part of a listener's digest, so that both sides mean the same.
func Keys(of types.NamespacedName) (certificate, privateKey, version string) {
	prefix := prefixOf(of)
	return prefix + certificateSuffix, prefix + keySuffix, prefix + versionSuffix
}

func prefixOf(of types.NamespacedName) string {
	prefix := of.Namespace + "." + of.Name
	if len(prefix) > maxPrefix {
		sum := sha256.Sum256([]byte(of.String()))
		prefix = fmt.Sprintf("%s-%x", prefix[:maxPrefix-21], sum[:10])
	}
	return prefix
}

// Certificate is a copy.
type Certificate struct {
	// Certificate and PrivateKey are PEM.
	Certificate, PrivateKey []byte
	// Version is the resourceVersion of the Secret that it is a copy of.
	Version string
}

// Put adds a copy to the data of the Secret with the copies.
func Put(data map[string][]byte, of types.NamespacedName, copied Certificate) {
	certificate, privateKey, version := Keys(of)
	data[certificate], data[privateKey], data[version] = copied.Certificate, copied.PrivateKey, []byte(copied.Version)
}

// Find returns the copy of a Secret of another namespace, and whether there is one.
func Find(in *corev1.Secret, of types.NamespacedName) (Certificate, bool) {
	if in == nil {
		return Certificate{}, false
	}
	certificate, privateKey, version := Keys(of)
	found := Certificate{Certificate: in.Data[certificate], PrivateKey: in.Data[privateKey], Version: string(in.Data[version])}
	return found, found.Certificate != nil && found.PrivateKey != nil && found.Version != ""
}

// Bundle is a copy of a ConfigMap with certificates of authorities.
type Bundle struct {
	// Authorities is PEM.
	Authorities []byte
	// Version is the resourceVersion of the ConfigMap.
	Version string
}

// PutBundle adds a copy of a ConfigMap to the data of the Secret with the copies.
func PutBundle(data map[string][]byte, of types.NamespacedName, copied Bundle) {
	prefix := prefixOf(of)
	data[prefix+bundleSuffix], data[prefix+bundleVersion] = copied.Authorities, []byte(copied.Version)
}

// FindBundle returns the copy of a ConfigMap, and whether there is one.
func FindBundle(in *corev1.Secret, of types.NamespacedName) (Bundle, bool) {
	if in == nil {
		return Bundle{}, false
	}
	prefix := prefixOf(of)
	found := Bundle{Authorities: in.Data[prefix+bundleSuffix], Version: string(in.Data[prefix+bundleVersion])}
	return found, len(found.Authorities) > 0 && found.Version != ""
}

// Credentials are a copy of a Secret that says whom a GatewayPolicy lets in, or of one of its keys.
type Credentials struct {
	Data map[string][]byte
	// Version is the resourceVersion of the Secret.
	Version string
}

// PutCredentials adds a copy of such a Secret to the data of the Secret with the copies.
func PutCredentials(data map[string][]byte, of types.NamespacedName, copied Credentials) error {
	content, err := json.Marshal(copied.Data)
	if err != nil {
		return fmt.Errorf("write the copy of Secret %q: %w", of, err)
	}
	prefix := prefixOf(of)
	data[prefix+contentSuffix], data[prefix+contentVersion] = content, []byte(copied.Version)
	return nil
}

// FindCredentials returns the copy of such a Secret, and whether there is one.
func FindCredentials(in *corev1.Secret, of types.NamespacedName) (Credentials, bool) {
	if in == nil {
		return Credentials{}, false
	}
	prefix := prefixOf(of)
	found := Credentials{Version: string(in.Data[prefix+contentVersion])}
	if found.Version == "" || json.Unmarshal(in.Data[prefix+contentSuffix], &found.Data) != nil {
		return Credentials{}, false
	}
	return found, true
}
