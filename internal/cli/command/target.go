package command

import (
	"context"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
)

// ParseTarget returns the name of the WebApp in an argument.
func ParseTarget(argument string) (string, error) {
	name, ok := WebAppKind.NameOf(argument)
	if ok {
		return name, nil
	}
	if word, _, found := strings.Cut(argument, "/"); found && !WebAppKind.isNamed(word) {
		return "", UsageErrorf("%q is not a WebApp: say webapp/NAME", argument)
	}
	return "", UsageErrorf("%q does not name a WebApp: say webapp/NAME", argument)
}

// Target makes the clients and reads the WebApp that an argument names.
func (p *Program) Target(ctx context.Context, argument string) (*Clients, *slipwayv1alpha1.WebApp, error) {
	name, err := ParseTarget(argument)
	if err != nil {
		return nil, nil, err
	}
	clients, err := p.Clients()
	if err != nil {
		return nil, nil, err
	}
	app, err := clients.GetWebApp(ctx, name)
	if err != nil {
		return nil, nil, err
	}
	return clients, app, nil
}

// OneTarget accepts one argument, which names a WebApp.
func OneTarget(_ *cobra.Command, args []string) error {
	if len(args) != 1 {
		return UsageErrorf("name one WebApp: webapp/NAME")
	}
	_, err := ParseTarget(args[0])
	return err
}

// NoArguments accepts none.
func NoArguments(_ *cobra.Command, args []string) error {
	if len(args) > 0 {
		return UsageErrorf("unexpected argument %q", args[0])
	}
	return nil
}

// completeFlags offers namespaces and contexts.
func (p *Program) completeFlags(root *cobra.Command) {
	MustComplete(root, "namespace", func(cmd *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
		clients, err := p.Clients()
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		list, err := clients.Kube.CoreV1().Namespaces().List(cmd.Context(), metav1.ListOptions{})
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		var names []string
		for i := range list.Items {
			if strings.HasPrefix(list.Items[i].Name, typed) {
				names = append(names, list.Items[i].Name)
			}
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	})
	MustComplete(root, "context", func(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
		config, err := p.Flags.ToRawKubeConfigLoader().RawConfig()
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		var names []string
		for name := range config.Contexts {
			if strings.HasPrefix(name, typed) {
				names = append(names, name)
			}
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	})
}

// MustComplete registers a completion. It fails only for a flag that does not exist. Then
// the first test that builds the command fails.
func MustComplete(cmd *cobra.Command, flag string, complete cobra.CompletionFunc) {
	if err := cmd.RegisterFlagCompletionFunc(flag, complete); err != nil {
		panic(err)
	}
}

// WebAppRef formats the name of a WebApp for the output.
func WebAppRef(name string) string { return WebAppKind.Ref(name) }
