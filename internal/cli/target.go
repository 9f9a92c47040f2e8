package cli

import (
	"context"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
)

// parseTarget returns the name of the WebApp in an argument.
func parseTarget(argument string) (string, error) {
	name, ok := webAppKind.nameOf(argument)
	if ok {
		return name, nil
	}
	if word, _, found := strings.Cut(argument, "/"); found && !webAppKind.isNamed(word) {
		return "", usageErrorf("%q is not a WebApp: say webapp/NAME", argument)
	}
	return "", usageErrorf("%q does not name a WebApp: say webapp/NAME", argument)
}

// target makes the clients and reads the WebApp that an argument names.
func (p *program) target(ctx context.Context, argument string) (*clients, *slipwayv1alpha1.WebApp, error) {
	name, err := parseTarget(argument)
	if err != nil {
		return nil, nil, err
	}
	clients, err := p.clients()
	if err != nil {
		return nil, nil, err
	}
	app, err := clients.getWebApp(ctx, name)
	if err != nil {
		return nil, nil, err
	}
	return clients, app, nil
}

func oneTarget(_ *cobra.Command, args []string) error {
	if len(args) != 1 {
		return usageErrorf("name one WebApp: webapp/NAME")
	}
	_, err := parseTarget(args[0])
	return err
}

func noArguments(_ *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usageErrorf("unexpected argument %q", args[0])
	}
	return nil
}

// completeFlags offers namespaces and contexts.
func (p *program) completeFlags(root *cobra.Command) {
	mustComplete(root, "namespace", func(cmd *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
		clients, err := p.clients()
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		list, err := clients.kube.CoreV1().Namespaces().List(cmd.Context(), metav1.ListOptions{})
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
	mustComplete(root, "context", func(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
		config, err := p.flags.ToRawKubeConfigLoader().RawConfig()
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

// mustComplete registers a completion. It fails only for a flag that does not exist. Then
// the first test that builds the command fails.
func mustComplete(cmd *cobra.Command, flag string, complete cobra.CompletionFunc) {
	if err := cmd.RegisterFlagCompletionFunc(flag, complete); err != nil {
		panic(err)
	}
}

// ref formats the name of a WebApp for the output.
func ref(name string) string { return webAppKind.ref(name) }
