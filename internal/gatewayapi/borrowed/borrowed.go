// Package borrowed says how certificates of other namespaces reach the pods of a Gateway. The operator copies each that a
// ReferenceGrant permits into one Secret beside the pods, and takes it out again with the grant. The pods read that one, so
// they need no right in another namespace. Both sides import this package.
package borrowed

import (
	"crypto/sha256"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
)

const (
	certificateSuffix = ".tls.crt"
	keySuffix         = ".tls.key"
	versionSuffix     = ".version"
	// maxPrefix leaves room for the longest suffix.
	maxPrefix = validation.DNS1123SubdomainMaxLength - len(certificateSuffix)
)

// SecretName is the name of the Secret with the copies, of the name of the Deployment that runs the pods.
func SecretName(deployment string) string { return deployment + "-certificates" }

// Keys are those of a Secret of another namespace in the Secret with the copies: its certificate, its private key, and its
// resourceVersion when they were copied. The version is part of a listener's digest, so that both sides mean the same.
func Keys(of types.NamespacedName) (certificate, privateKey, version string) {
	prefix := of.Namespace + "." + of.Name
	if len(prefix) > maxPrefix {
		sum := sha256.Sum256([]byte(of.String()))
		prefix = fmt.Sprintf("%s-%x", prefix[:maxPrefix-21], sum[:10])
	}
	return prefix + certificateSuffix, prefix + keySuffix, prefix + versionSuffix
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
