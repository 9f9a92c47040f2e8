package command

import (
	"slices"
	"strings"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
)

// OurKind is a kind of Slipway with its names. Other projects use many of them too: Backup, the short names app and gw. Here they
// mean our kind first.
type OurKind struct {
	// kind is its name, and kinds its plural.
	kind, kinds string
	// Shorts are its short names. The first one is no other project's. The others are former ones, which end in v0.4.0, also in api.
	Shorts     []string
	namespaced bool
}

// These are the kinds of Slipway.
var (
	WebAppKind  = &OurKind{"WebApp", "WebApps", []string{"slwapp", "app"}, true}
	GatewayKind = &OurKind{"APIGateway", "APIGateways", []string{"slwgw", ShortGateway}, true}
	BackupKind  = &OurKind{"Backup", "Backups", []string{"slwbk", "bk"}, true}
	RunKind     = &OurKind{"BackupRun", "BackupRuns", []string{"slwbkr", "bkr"}, true}
	// rs is kubectl's name for ReplicaSets. It never was one of Restores, except in the command why.
	RestoreKind = &OurKind{"Restore", "Restores", []string{"slwrs", "rs"}, true}

	OurKinds = []*OurKind{
		WebAppKind, GatewayKind, BackupKind, RunKind, RestoreKind,
		{"GatewayParameters", "GatewayParameters", []string{"slwgwparams", "gwparams"}, true},
		{"GatewayPolicy", "GatewayPolicies", []string{"slwgwpolicy", "gwpolicy"}, true},
		{"MonitorRule", "MonitorRules", []string{"slwmrule", "mrule"}, false},
	}
)

// ShortGateway is the old short name of APIGateways. For many it means the Gateway of the Gateway API.
const ShortGateway = "gw"

// Singular is the name of one object of the kind, as users write it.
func (k *OurKind) Singular() string { return strings.ToLower(k.kind) }

// Plural is the name of the kind in paths of the API.
func (k *OurKind) Plural() string { return strings.ToLower(k.kinds) }

// isNamed reports whether a word is one of the names of the kind.
func (k *OurKind) isNamed(word string) bool {
	word = strings.ToLower(word)
	name, group, qualified := strings.Cut(word, ".")
	if qualified {
		ours := group == slipwayv1alpha1.GroupName || group == slipwayv1alpha1.SchemeGroupVersion.Version+"."+slipwayv1alpha1.GroupName
		return ours && (name == k.Singular() || name == k.Plural())
	}
	return name == k.Singular() || name == k.Plural() || slices.Contains(k.Shorts, word)
}

// Info is the kind as the API server offers it.
func (k *OurKind) Info() KindInfo {
	return KindInfo{slipwayv1alpha1.SchemeGroupVersion.WithResource(k.Plural()), k.kind, k.namespaced}
}

// Ref formats the name of an object of the kind for the output.
func (k *OurKind) Ref(name string) string { return k.Singular() + "/" + name }

// ourKindNamed returns the kind of Slipway that a word names, or nil.
func ourKindNamed(word string) *OurKind {
	for _, k := range OurKinds {
		if k.isNamed(word) {
			return k
		}
	}
	return nil
}

// ParseOurs returns kind and name of the object of Slipway in KIND/NAME. The kind is nil if it is not one of ours, or if the
// argument does not name an object.
func ParseOurs(argument string) (*OurKind, string) {
	word, name, _ := strings.Cut(argument, "/")
	if name == "" || strings.Contains(name, "/") {
		return nil, ""
	}
	return ourKindNamed(word), name
}

// NameOf returns the name in NAME or KIND/NAME. ok is false if KIND is another kind, or if no object is named.
func (k *OurKind) NameOf(argument string) (name string, ok bool) {
	word, name, found := strings.Cut(argument, "/")
	if !found {
		word, name = k.Singular(), argument
	}
	return name, k.isNamed(word) && name != "" && !strings.Contains(name, "/")
}
