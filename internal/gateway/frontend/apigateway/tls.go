package apigateway

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"crypto/x509"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/gateway/feature"
	"github.com/slipway-dev/slipway/internal/gateway/feature/auth"
	"github.com/slipway-dev/slipway/internal/gateway/model"
)

// backendTLS makes what a policy says about TLS, with the contents of what it names. With a fault, the backend must not be
// reached.
func (c *compiler) backendTLS(spec *slipwayv1alpha1.BackendTLS) (*model.BackendTLS, *model.Fault) {
	if spec.Hostname == "" {
		return nil, &model.Fault{Reason: slipwayv1alpha1.ReasonInvalid, Message: "tls.hostname: it is missing"}
	}
	in := model.BackendTLSInput{ServerName: spec.Hostname, System: len(spec.CACertificates) == 0}
	for _, name := range feature.Words(spec.SubjectAltNames) {
		if strings.Contains(name, "://") {
			in.URIs = append(in.URIs, name)
		} else {
			in.Names = append(in.Names, name)
		}
	}
	var f *model.Fault
	if in.Roots, f = c.in.authorities("tls.caCertificates", spec.CACertificates); f != nil {
		return nil, f
	}
	if spec.ClientCertificateRef != nil {
		const field = "tls.clientCertificateRef"
		from := c.source()
		data, f := from.Secret(field, spec.ClientCertificateRef.Name)
		if f != nil {
			return nil, f
		}
		in.Certificate, in.PrivateKey = data[corev1.TLSCertKey], data[corev1.TLSPrivateKeyKey]
		if len(in.Certificate) == 0 || len(in.PrivateKey) == 0 {
			return nil, &model.Fault{
				Reason: slipwayv1alpha1.ReasonInvalidCertificate,
				Message: fmt.Sprintf("%s: Secret %q must have a certificate in %s and its key in %s", field,
					spec.ClientCertificateRef.Name, corev1.TLSCertKey, corev1.TLSPrivateKeyKey),
			}
		}
	}
	made, err := model.NewBackendTLS(in)
	if err != nil { // the authorities were read before, so it is the certificate
		return nil, &model.Fault{Reason: slipwayv1alpha1.ReasonInvalidCertificate, Message: fmt.Sprintf(
			"tls.clientCertificateRef: Secret %q: %v", spec.ClientCertificateRef.Name, err)}
	}
	return made, nil
}

// Clients is what a spec asks of clients of HTTPS.
type Clients struct {
	// Identity is equal for two values that trust the same clients.
	Identity string
	// Roots are the authorities that are trusted.
	Roots *x509.CertPool
	// Optional lets clients in without a valid certificate.
	Optional bool
	// Fingerprint and Name are headers in canonical form, or empty.
	Fingerprint, Name string
}

// Clients makes what the spec says about client certificates. With a fault, it trusts nobody.
func (in *Input) Clients(spec *slipwayv1alpha1.ClientCertificates) (Clients, *model.Fault) {
	made, f := in.clients(spec)
	if f != nil {
		made.Identity, made.Roots, made.Optional = "nobody", x509.NewCertPool(), false
	}
	return made, f
}

func (in *Input) clients(spec *slipwayv1alpha1.ClientCertificates) (Clients, *model.Fault) {
	var made Clients
	switch spec.Mode {
	case "", slipwayv1alpha1.ClientCertificatesRequire:
	case slipwayv1alpha1.ClientCertificatesAllowInsecureFallback:
		made.Optional = true
	default:
		return made, &model.Fault{Reason: slipwayv1alpha1.ReasonInvalid, Message: fmt.Sprintf(
			"mode: %q is neither Require nor AllowInsecureFallback", spec.Mode)}
	}
	for _, header := range []struct {
		field, name string
		into        *string
	}{{"fingerprintHeader", spec.FingerprintHeader, &made.Fingerprint}, {"nameHeader", spec.NameHeader, &made.Name}} {
		if header.name == "" {
			continue
		}
		name, f := feature.EditableHeader(header.field, header.name)
		if f != nil {
			return made, &model.Fault{Reason: slipwayv1alpha1.ReasonInvalid, Message: f.Message}
		}
		if auth.SaysWhere(name) {
			return made, &model.Fault{Reason: slipwayv1alpha1.ReasonInvalid, Message: fmt.Sprintf(
				"%s: %s is what the gateway says of where a request comes from", header.field, name)}
		}
		*header.into = name
	}
	if made.Name != "" && made.Name == made.Fingerprint {
		return made, &model.Fault{Reason: slipwayv1alpha1.ReasonInvalid, Message: "nameHeader: it is the same as fingerprintHeader"}
	}
	if len(spec.CACertificates) == 0 {
		return made, &model.Fault{
			Reason:  slipwayv1alpha1.ReasonInvalid,
			Message: "caCertificates: there is none, so no client could be let in",
		}
	}
	bundle, f := in.authorities("caCertificates", spec.CACertificates)
	if f != nil {
		return made, f
	}
	var err error
	if made.Roots, err = model.ParseRoots(bundle); err != nil { // each of them was read before
		return made, &model.Fault{Reason: slipwayv1alpha1.ReasonInvalidCACertificates, Message: "caCertificates: " + err.Error()}
	}
	made.Identity = fmt.Sprintf("%t/%x", made.Optional, sha256.Sum256(bundle))
	return made, nil
}

// authorities returns the certificates that are named, in PEM. All of them can be read.
func (in *Input) authorities(field string, refs []slipwayv1alpha1.CACertificates) ([]byte, *model.Fault) {
	all := make([][]byte, 0, len(refs))
	for i := range refs {
		bundle, f := in.bundle(&refs[i])
		if f != nil {
			f.Message = fmt.Sprintf("%s[%d]: %s", field, i, f.Message)
			return nil, f
		}
		all = append(all, bundle)
	}
	return bytes.Join(all, []byte("\n")), nil
}

// bundle returns the certificates of one ConfigMap or Secret.
func (in *Input) bundle(ref *slipwayv1alpha1.CACertificates) ([]byte, *model.Fault) {
	kind, key := cmp.Or(ref.Kind, slipwayv1alpha1.CACertificatesConfigMap), cmp.Or(ref.Key, slipwayv1alpha1.DefaultCACertificatesKey)
	of, unreadable, missing := in.ConfigMaps, in.UnreadableConfigMaps, slipwayv1alpha1.ReasonConfigMapNotFound
	switch kind {
	case slipwayv1alpha1.CACertificatesConfigMap:
	case slipwayv1alpha1.CACertificatesSecret:
		of, unreadable, missing = in.Secrets, in.Unreadable, slipwayv1alpha1.ReasonSecretNotFound
	default:
		return nil, &model.Fault{Reason: slipwayv1alpha1.ReasonInvalid, Message: fmt.Sprintf(
			"kind: %q is neither ConfigMap nor Secret", kind)}
	}
	data, found := of[ref.Name]
	if !found {
		return nil, &model.Fault{Reason: missing, Message: fmt.Sprintf(
			"%s %q %s", kind, ref.Name, feature.WhyMissing(unreadable[ref.Name]))}
	}
	bundle, found := data[key]
	if !found {
		return nil, &model.Fault{Reason: slipwayv1alpha1.ReasonKeyNotFound, Message: fmt.Sprintf(
			"%s %q has no key %q", kind, ref.Name, key)}
	}
	if _, err := model.ParseRoots(bundle); err != nil {
		return nil, &model.Fault{Reason: slipwayv1alpha1.ReasonInvalidCACertificates, Message: fmt.Sprintf(
			"key %q of %s %q cannot be used: %v", key, kind, ref.Name, err)}
	}
	return bundle, nil
}
