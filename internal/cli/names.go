package cli

import (
	"slices"
	"strings"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
)

// ourKind is a kind of Slipway with its names. Other projects use many of them too: Backup, the short names app and gw. Here they
// mean our kind first.
type ourKind struct {
	// kind is its name, and kinds its plural.
	kind, kinds string
	// shorts are its short names. The first one is no other project's. The others stay for one release.
	shorts     []string
	namespaced bool
}

// These are the kinds of Slipway.
var (
	webAppKind  = &ourKind{"WebApp", "WebApps", []string{"slwapp", "app"}, true}
	gatewayKind = &ourKind{"APIGateway", "APIGateways", []string{"slwgw", shortGateway}, true}
	backupKind  = &ourKind{"Backup", "Backups", []string{"slwbk", "bk"}, true}
	runKind     = &ourKind{"BackupRun", "BackupRuns", []string{"slwbkr", "bkr"}, true}
	// rs is kubectl's name for ReplicaSets. It never was one of Restores, except in the command why.
	restoreKind = &ourKind{"Restore", "Restores", []string{"slwrs", "rs"}, true}

	ourKinds = []*ourKind{
		webAppKind, gatewayKind, backupKind, runKind, restoreKind,
		{"GatewayParameters", "GatewayParameters", []string{"slwgwparams", "gwparams"}, true},
		{"GatewayPolicy", "GatewayPolicies", []string{"slwgwpolicy", "gwpolicy"}, true},
		{"MonitorRule", "MonitorRules", []string{"slwmrule", "mrule"}, false},
	}
)

// shortGateway is the old short name of APIGateways. For many it means the Gateway of the Gateway API.
const shortGateway = "gw"

func (k *ourKind) singular() string { return strings.ToLower(k.kind) }

func (k *ourKind) plural() string { return strings.ToLower(k.kinds) }

// isNamed reports whether a word is one of the names of the kind.
func (k *ourKind) isNamed(word string) bool {
	word = strings.ToLower(word)
	name, group, qualified := strings.Cut(word, ".")
	if qualified {
		ours := group == slipwayv1alpha1.GroupName || group == slipwayv1alpha1.SchemeGroupVersion.Version+"."+slipwayv1alpha1.GroupName
		return ours && (name == k.singular() || name == k.plural())
	}
	return name == k.singular() || name == k.plural() || slices.Contains(k.shorts, word)
}

// info is the kind as the API server offers it.
func (k *ourKind) info() kindInfo {
	return kindInfo{slipwayv1alpha1.SchemeGroupVersion.WithResource(k.plural()), k.kind, k.namespaced}
}

// ref formats the name of an object of the kind for the output.
func (k *ourKind) ref(name string) string { return k.singular() + "/" + name }

// ourKindNamed returns the kind of Slipway that a word names, or nil.
func ourKindNamed(word string) *ourKind {
	for _, k := range ourKinds {
		if k.isNamed(word) {
			return k
		}
	}
	return nil
}

// parseOurs returns kind and name of the object of Slipway in KIND/NAME. The kind is nil if it is not one of ours, or if the
// argument does not name an object.
func parseOurs(argument string) (*ourKind, string) {
	word, name, _ := strings.Cut(argument, "/")
	if name == "" || strings.Contains(name, "/") {
		return nil, ""
	}
	return ourKindNamed(word), name
}

// nameOf returns the name in NAME or KIND/NAME. ok is false if KIND is another kind, or if no object is named.
func (k *ourKind) nameOf(argument string) (name string, ok bool) {
	word, name, found := strings.Cut(argument, "/")
	if !found {
		word, name = k.singular(), argument
	}
	return name, k.isNamed(word) && name != "" && !strings.Contains(name, "/")
}
