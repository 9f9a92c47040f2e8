package watch

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-dev/slipway/internal/cli/command"
	"github.com/slipway-dev/slipway/internal/monitor/change"
)

const watchLong = `Show every change of objects as it happens: which fields changed, from what to what, who most likely did it,
and when the health of the object changes.

Without a kind every custom resource of the cluster is watched, also of kinds that are installed later. It works
without the monitor: everything is read with your own rights. What happens while it does not run is not seen.

What looks like a secret is hidden. Times, counters and the like that change without a meaning are left out.
Colours are used on a terminal, unless NO_COLOR is set.`

const watchExample = `  # Every custom resource of the namespace, and those without a namespace
  kubectl slipway watch

  # All objects of a kind, in all namespaces
  kubectl slipway watch certificates.cert-manager.io -A

  # One object, for a program
  kubectl slipway watch deployment/shop -o json`

type watchOptions struct {
	*command.Program
	output        command.Format
	allNamespaces bool
}

// NewCommand makes the command watch.
func NewCommand(p *command.Program) *cobra.Command {
	o := &watchOptions{Program: p, output: command.FormatTable}
	cmd := &cobra.Command{
		Use:               "watch [KIND [NAME]]",
		Short:             "Show changes of objects of any kind as they happen",
		Long:              watchLong,
		Example:           watchExample,
		Args:              watchArguments,
		ValidArgsFunction: p.CompleteWatch,
		RunE:              func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args) },
	}
	o.output.AddFlag(cmd)
	cmd.Flags().BoolVarP(&o.allNamespaces, "all-namespaces", "A", false, "watch all namespaces")
	return cmd
}

func watchArguments(_ *cobra.Command, args []string) error {
	kind, name := watchTarget(args)
	if len(args) > 2 || len(args) > 0 && kind == "" || strings.ContainsAny(kind+name, "/,") {
		return command.UsageErrorf("name a kind, and one object of it at most: [KIND [NAME]]")
	}
	return nil
}

// watchTarget accepts KIND, KIND NAME and KIND/NAME.
func watchTarget(args []string) (kind, name string) {
	switch len(args) {
	case 0:
		return "", ""
	case 1:
		kind, name, _ = strings.Cut(args[0], "/")
		return kind, name
	default:
		return args[0], args[1]
	}
}

// watcher follows kinds and hands on what it sees.
type watcher struct {
	*command.AnyClients
	// namespace is empty for all, and name for all objects.
	namespace, name string
	policy          *change.Policy
	now             func() metav1.Time
	// seen takes what was seen. Nothing is dropped: who sends waits until it is taken.
	seen    chan sighting
	running sync.WaitGroup
}

func (o *watchOptions) run(ctx context.Context, args []string) error {
	clients, err := o.AnyClients()
	if err != nil {
		return err
	}
	// The key lasts as long as the command: a secret that changes is seen to change.
	key := make([]byte, change.MinKey)
	if _, err := rand.Read(key); err != nil {
		return fmt.Errorf("make a key to hide secrets with: %w", err)
	}
	policy, err := change.NewPolicy(change.Options{Key: key})
	if err != nil {
		return err
	}
	w := &watcher{
		AnyClients: clients, policy: policy, seen: make(chan sighting, 1), namespace: clients.Namespace,
		now: func() metav1.Time { return metav1.NewTime(o.Clock.Now()) },
	}
	if o.allNamespaces {
		w.namespace = ""
	}
	ctx, stop := context.WithCancel(ctx)
	defer w.running.Wait()
	defer stop()
	kind, name := watchTarget(args)
	w.name = name
	if kind == "" {
		w.followDefinitions(ctx)
	} else if err := w.followKind(ctx, kind); err != nil {
		return err
	}
	return o.show(ctx, w)
}

// show prints what is seen until the user has seen enough.
func (o *watchOptions) show(ctx context.Context, w *watcher) error {
	printer := &watchPrinter{
		out: o.Streams.Out, errOut: o.Streams.ErrOut, output: o.output,
		Painter: command.Painter{Colours: o.Colour && o.output == command.FormatTable}, waiting: map[string]bool{},
	}
	for {
		select {
		case <-ctx.Done():
			return &command.ExitError{Code: command.ExitInterrupted}
		case s := <-w.seen:
			if s.fatal != nil {
				return s.fatal
			}
			if err := printer.show(s); err != nil {
				return err
			}
		}
	}
}

// send hands on what was seen.
func (w *watcher) send(ctx context.Context, s sighting) {
	select {
	case w.seen <- s:
	case <-ctx.Done():
	}
}

// followKind watches one kind that the user named.
func (w *watcher) followKind(ctx context.Context, argument string) error {
	mapping, err := w.Mapping(argument)
	if err != nil {
		return err
	}
	kind := change.Kind{
		Group: mapping.Resource.Group, Version: mapping.Resource.Version, Resource: mapping.Resource.Resource,
		Kind: mapping.GroupVersionKind.Kind, Namespaced: mapping.Scope.Name() == meta.RESTScopeNameNamespace,
	}
	// The definition says which lists have keys. Without it, or without the right to read it, lists are compared by position.
	definition, _ := w.readDefinition(ctx, kind.GroupResource())
	// Before the kind is watched, so that its first list is waited for. There is room for it.
	w.send(ctx, sighting{begun: []string{kind.GroupResource().String()}})
	w.follow(ctx, kind, schemaOf(definition, kind.Version))
	return nil
}

// refusal is why a kind cannot be watched, in a few words that stay the same.
func refusal(err error) string {
	var status apierrors.APIStatus
	switch {
	case apierrors.IsForbidden(err):
		return "you may not list and watch it"
	case errors.As(err, &status):
		return status.Status().Message
	default:
		return err.Error()
	}
}
