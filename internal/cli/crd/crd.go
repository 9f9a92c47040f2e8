package crd

import (
	"context"
	"errors"

	"github.com/spf13/cobra"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/slipway-dev/slipway/internal/cli/command"
	"github.com/slipway-dev/slipway/internal/monitor/crdcheck"
)

// ExitBreaks is the exit code of a check that found something that breaks.
const ExitBreaks = 2

// NewCommand makes the command crd with those below it.
func NewCommand(p *command.Program) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "crd",
		Short: "Say what a changed CustomResourceDefinition breaks",
		Args:  command.NoArguments,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newCRDCheckCommand(p))
	return cmd
}

const crdCheckLong = `Say what breaks when CustomResourceDefinitions are applied, before they are.

Each CustomResourceDefinition of the files is compared with the one of the same name in the cluster.
Then all its objects in the cluster are checked against the new schema: which cannot be written any
more, which fields cannot be edited any more, and which fields vanish. Nothing is written. With
--namespace only the objects of that namespace are checked.

Exit code 0 when nothing breaks, 2 when something breaks, 1 when that could not be found out.`

const crdCheckExample = `  # What does the new release of an operator break?
  kubectl slipway crd check widgets.yaml

  # All definitions of a chart or an overlay
  kubectl kustomize config/crd | kubectl slipway crd check -

  # In a pipeline, without a cluster
  kubectl slipway crd check new.yaml --against old.yaml`

type crdCheckOptions struct {
	*command.Program
	output      command.Format
	against     string
	noInstances bool
}

func newCRDCheckCommand(p *command.Program) *cobra.Command {
	o := &crdCheckOptions{Program: p, output: command.FormatTable}
	cmd := &cobra.Command{
		Use:     "check FILE...",
		Short:   "Say what breaks when CustomResourceDefinitions are applied",
		Long:    crdCheckLong,
		Example: crdCheckExample,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return command.UsageErrorf("name a file with CustomResourceDefinitions, or - for the standard input")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args) },
	}
	o.output.AddFlag(cmd)
	cmd.Flags().StringVar(&o.against, "against", "", "compare with the definitions in this file, without a cluster")
	cmd.Flags().BoolVar(&o.noInstances, "no-instances", false, "do not check the objects in the cluster")
	return cmd
}

func (o *crdCheckOptions) run(ctx context.Context, files []string) error {
	definitions, err := o.readDefinitions(files)
	if err != nil {
		return err
	}
	source, err := o.source()
	if err != nil {
		return err
	}
	reports := make([]crdReport, 0, len(definitions))
	for _, after := range definitions {
		report, err := o.check(ctx, source, after)
		if ctx.Err() != nil {
			return &command.ExitError{Code: command.ExitInterrupted}
		}
		if err != nil {
			return err
		}
		reports = append(reports, report)
	}
	if err := o.show(reports); err != nil {
		return err
	}
	return crdOutcome(reports)
}

// crdSource is where the definitions are that are to be replaced, and their objects.
type crdSource interface {
	// definition returns the definition of a name, nil when there is none.
	definition(ctx context.Context, name string) (*apiextensionsv1.CustomResourceDefinition, error)
	// objects checks the objects of a definition. It returns nil when it has none to check.
	objects(ctx context.Context, before, after *apiextensionsv1.CustomResourceDefinition) *crdObjects
}

// source returns the cluster, or the file of --against.
func (o *crdCheckOptions) source() (crdSource, error) {
	if o.against == "" {
		return o.cluster()
	}
	definitions, err := o.readDefinitions([]string{o.against})
	if err != nil {
		return nil, err
	}
	return fileSource(definitions), nil
}

// fileSource are the definitions of a file. It has no objects.
type fileSource []*apiextensionsv1.CustomResourceDefinition

func (s fileSource) definition(_ context.Context, name string) (*apiextensionsv1.CustomResourceDefinition, error) {
	for _, crd := range s {
		if crd.Name == name {
			return crd, nil
		}
	}
	return nil, nil
}

func (s fileSource) objects(
	context.Context, *apiextensionsv1.CustomResourceDefinition, *apiextensionsv1.CustomResourceDefinition,
) *crdObjects {
	return nil
}

func (o *crdCheckOptions) check(ctx context.Context, source crdSource, after *apiextensionsv1.CustomResourceDefinition) (crdReport, error) {
	before, err := source.definition(ctx, after.Name)
	if err != nil {
		return crdReport{}, err
	}
	report := crdReport{Name: after.Name, New: before == nil, Findings: []crdcheck.Finding{}}
	report.Findings = append(report.Findings, crdcheck.Refused(ctx, before, after)...)
	report.Findings = append(report.Findings, crdcheck.Compare(before, after)...)
	if before != nil && !o.noInstances {
		report.Objects = source.objects(ctx, before, after)
	}
	report.Breaks = report.breaks()
	return report, nil
}

// crdOutcome turns the reports into the command's result.
func crdOutcome(reports []crdReport) error {
	incomplete := false
	for _, report := range reports {
		if report.Breaks {
			return &command.ExitError{Code: ExitBreaks}
		}
		incomplete = incomplete || report.Objects != nil && (report.Objects.NotChecked != "" || report.Objects.Unknown > 0)
	}
	if incomplete {
		return errors.New("not all objects could be checked")
	}
	return nil
}
