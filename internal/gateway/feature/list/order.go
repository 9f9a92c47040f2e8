package list

import "slices"

// Of two faults of a rule the first one is told, and statuses show it. So these orders stay as they are. A setting that they do not
// name, as a new one, comes after those that they do.
var (
	// routeOrder is that of an APIGateway's routes.
	routeOrder = []string{
		"cors", "clientAddresses", "rateLimit", "sessionAffinity", "auth", "compression", "cache", "maxBodyBytes",
		"backends",
	}
	// policyOrder is that of policies.
	policyOrder = []string{
		"clientAddresses", "cors", "maxBodyBytes", "backends", "sessionAffinity", "compression", "cache", "rateLimit",
		"auth",
	}
	// compileOrder is that of the table. What a rule asks of pages of other origins is known before its other faults, so that a rule
	// with one keeps its preflight requests.
	compileOrder = []string{
		"cors", "maxBodyBytes", "rateLimit", "backends", "sessionAffinity", "clientAddresses", "auth", "compression",
		"cache",
	}
)

// ForRoutes, ForPolicies and ForTable are all settings in the orders above.
var (
	ForRoutes   = inOrder(routeOrder)
	ForPolicies = inOrder(policyOrder)
	ForTable    = inOrder(compileOrder)
)

func inOrder(names []string) []*Entry {
	list := make([]*Entry, 0, Count)
	for _, name := range names {
		list = append(list, Named(name))
	}
	for i := range Entries {
		if e := &Entries[i]; !slices.Contains(list, e) {
			list = append(list, e)
		}
	}
	return list
}

// Named returns a setting by its name. It panics for an unknown one.
func Named(name string) *Entry { return &Entries[Index(name)] }

// Index returns the place of a setting in Entries. It panics for an unknown one.
func Index(name string) int {
	for i := range Entries {
		if Entries[i].Name == name {
			return i
		}
	}
	panic("there is no setting " + name)
}
