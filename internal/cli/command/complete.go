package command

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/metadata"
)

// CompleteOf offers the names of the namespace's objects of one kind, for a command that takes no other: NAME or KIND/NAME.
func (p *Program) CompleteOf(kind *OurKind) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		word, _, found := strings.Cut(typed, "/")
		if len(args) > 0 || found && !kind.isNamed(word) {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return p.offerNames(cmd.Context(), kind.Info(), prefixOf(typed), typed)
	}
}

// CompleteObjects offers objects of every kind: the kinds first, and then the names of that kind. bare reports whether a name alone
// is a WebApp, so that these are offered, too.
func (p *Program) CompleteObjects(bare bool) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		if word, _, found := strings.Cut(typed, "/"); found {
			return p.offerNamesOf(cmd.Context(), word, prefixOf(typed), typed)
		}
		offers, directive := p.offerKinds(typed, "/")
		if len(offers) > 0 {
			directive |= cobra.ShellCompDirectiveNoSpace // A name follows.
		}
		if bare {
			names, _ := p.offerNames(cmd.Context(), WebAppKind.Info(), "", typed)
			offers = append(names, offers...)
		}
		return offers, directive | cobra.ShellCompDirectiveKeepOrder
	}
}

// CompleteWatch offers kinds, and then names: KIND NAME or KIND/NAME.
func (p *Program) CompleteWatch(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	word, _, found := strings.Cut(typed, "/")
	switch {
	case len(args) == 0 && found:
		return p.offerNamesOf(cmd.Context(), word, prefixOf(typed), typed)
	case len(args) == 0:
		return p.offerKinds(typed, "")
	case len(args) == 1 && !strings.Contains(args[0], "/"):
		return p.offerNamesOf(cmd.Context(), args[0], "", typed)
	default:
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
}

// CompleteKinds offers kinds, for a flag.
func (p *Program) CompleteKinds(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
	return p.offerKinds(typed, "")
}

// prefixOf is what was typed up to the slash, with it.
func prefixOf(typed string) string { return typed[:strings.Index(typed, "/")+1] }

// offerKinds offers the kinds of the cluster whose name begins with what was typed: ours by their short singular, and all others
// as kubectl does, with their group. end is what follows the kind.
func (p *Program) offerKinds(typed, end string) ([]string, cobra.ShellCompDirective) {
	clients, err := p.AnyClients()
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	kinds, _, err := clients.Kinds()
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	var ours, others []string
	for _, kind := range kinds {
		name := kind.GroupResource().String()
		if own := ourKindNamed(name); own != nil {
			ours = append(ours, own.Singular()+end)
		} else {
			others = append(others, name+end)
		}
	}
	slices.Sort(ours)
	slices.Sort(others)
	return beginning(typed, append(ours, others...)), cobra.ShellCompDirectiveNoFileComp
}

// offerNamesOf offers the names of the objects of the kind that a word names.
func (p *Program) offerNamesOf(ctx context.Context, word, prefix, typed string) ([]string, cobra.ShellCompDirective) {
	if ours := ourKindNamed(word); ours != nil {
		return p.offerNames(ctx, ours.Info(), prefix, typed)
	}
	clients, err := p.AnyClients()
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	mapping, err := clients.Mapping(word)
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	return p.offerNames(ctx, InfoOf(mapping), prefix, typed)
}

// offerNames offers the names of objects of a kind, in the namespace if they are in one.
func (p *Program) offerNames(ctx context.Context, kind KindInfo, prefix, typed string) ([]string, cobra.ShellCompDirective) {
	clients, err := p.Clients()
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	config, err := p.Flags.ToRESTConfig()
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	all, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	client := metadata.ResourceInterface(all.Resource(kind.GroupVersionResource))
	if kind.Namespaced {
		client = all.Resource(kind.GroupVersionResource).Namespace(clients.Namespace)
	}
	list, err := client.List(ctx, metav1.ListOptions{Limit: PageSize})
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	var names []string
	for i := range list.Items {
		// A name of some kinds may hold any character.
		if name := list.Items[i].Name; Printable(name) == name {
			names = append(names, prefix+name)
		}
	}
	return beginning(typed, names), cobra.ShellCompDirectiveNoFileComp
}

// beginning returns those that begin with what was typed.
func beginning(typed string, offers []string) []string {
	return slices.DeleteFunc(offers, func(offer string) bool { return !strings.HasPrefix(offer, typed) })
}
