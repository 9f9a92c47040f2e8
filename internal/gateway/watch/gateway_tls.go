package watch

import (
	"bytes"
	"crypto/sha256"
	"crypto/x509"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/slipway-dev/slipway/internal/gateway/frontend/gatewayapi"
	"github.com/slipway-dev/slipway/internal/gateway/frontend/gatewayapi/copied"
	"github.com/slipway-dev/slipway/internal/gateway/model"
	"github.com/slipway-dev/slipway/internal/gateway/proxy"
	"github.com/slipway-dev/slipway/internal/gateway/table"
)

// bundles are the certificates of authorities that the operator has copied. Unlike those of
// servers, none of them stays in use when it is gone: who is not trusted any more is not
// trusted.
type bundles map[types.NamespacedName]copied.Bundle

// bundlesOf returns the authorities that a state names, as far as there are copies.
func (s *GatewaySource) bundlesOf(next *state) bundles {
	found := bundles{}
	in, _ := s.secrets.get(s.options.BorrowedCertificates)
	copies := &corev1.Secret{Data: in.data}
	for name := range next.bundles {
		if copied, is := copied.FindBundle(copies, name); is {
			found[name] = copied
		}
	}
	return found
}

// known is what the graph wants to know about them. One without a copy does not exist.
func (b bundles) known() map[types.NamespacedName]gatewayapi.Bundle {
	known := map[types.NamespacedName]gatewayapi.Bundle{}
	for name, bundle := range b {
		of := gatewayapi.Bundle{}
		if _, err := model.ParseRoots(bundle.Authorities); err != nil {
			of.Problem = err.Error()
		}
		known[name] = of
	}
	return known
}

func (b bundles) version(name types.NamespacedName) string { return b[name].Version }

// join returns the certificates of several bundles.
func (b bundles) join(names []types.NamespacedName) []byte {
	var all [][]byte
	for _, name := range names {
		all = append(all, b[name].Authorities)
	}
	return bytes.Join(all, []byte("\n"))
}

// clientCheck is how clients of a listener prove who they are. If the authorities cannot be
// read, nobody is let in.
func (b bundles) clientCheck(clients *gatewayapi.Clients) *proxy.ClientCheck {
	if clients == nil {
		return nil
	}
	authorities := b.join(clients.Bundles)
	roots, err := model.ParseRoots(authorities)
	if err != nil {
		roots = x509.NewCertPool()
	}
	return &proxy.ClientCheck{
		Identity: fmt.Sprintf("%t/%x", clients.Optional, sha256.Sum256(authorities)), Roots: roots, Optional: clients.Optional,
	}
}

// secureBackends adds to the settings of a table how backends are reached with TLS, and the
// certificate that they are shown. A backend for which that cannot be made is not reached:
// nobody is trusted.
func (b bundles) secureBackends(in *table.Input, g *gatewayapi.Graph, shown versionedPair) {
	if len(g.TLS) == 0 {
		return
	}
	in.Settings = maps.Clone(in.Settings)
	if in.Settings == nil {
		in.Settings = map[model.BackendName]model.Settings{}
	}
	for name, of := range g.TLS {
		made, err := model.NewBackendTLS(model.BackendTLSInput{
			ServerName: of.ServerName, Names: of.Names, URIs: of.URIs, Roots: b.join(of.Bundles), System: len(of.Bundles) == 0,
			Certificate: shown.crt, PrivateKey: shown.key,
		})
		if err != nil {
			made = &model.BackendTLS{Identity: "nobody", ServerName: of.ServerName, Roots: x509.NewCertPool()}
		}
		settings := in.Settings[name]
		settings.TLS = made
		in.Settings[name] = settings
	}
}
