package backup

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/cli/command"
)

const restoreLong = `Bring a copy of a Backup back to a volume: it makes a Restore.

It takes the newest verified copy; with --as-of the newest one whose source had been read until
then, with --snapshot that one. The volume has to be empty, unless --overwrite; --create makes it.

With --wait it shows the progress and ends when the Restore does: exit code 0 when everything is on
disk, 1 when it failed, 2 when --timeout has passed. The Restore goes on when the command is
interrupted.`

const restoreExample = `  # The newest verified copy, to a new volume
  kubectl slipway restore shop-data --to shop-data-restored --create 10Gi --wait

  # What it was at noon, of one folder only
  kubectl slipway restore shop-data --to shop-data-restored --as-of 2026-05-01T12:00:00Z --path uploads

  # A copy that kubectl slipway backup ls shows, over what is there
  kubectl slipway restore shop-data --to shop-data --snapshot 9d2e1c4b8a7f6053 --overwrite`

type restoreOptions struct {
	waitOptions
	to, create, asOf, snapshot, volume string
	paths                              []string
	overwrite, asRoot                  bool
}

// NewRestoreCommand makes the command restore.
func NewRestoreCommand(p *command.Program) *cobra.Command {
	o := &restoreOptions{waitOptions: waitOptions{Program: p, output: command.FormatTable}}
	cmd := &cobra.Command{
		Use:               "restore backup/NAME --to CLAIM",
		Short:             "Bring a copy of a Backup back to a volume",
		Long:              restoreLong,
		Example:           restoreExample,
		Args:              oneBackup,
		ValidArgsFunction: p.CompleteOf(command.BackupKind),
		RunE:              func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args[0]) },
	}
	flags := cmd.Flags()
	flags.StringVar(&o.to, "to", "", "PersistentVolumeClaim to write (required)")
	flags.StringVar(&o.create, "create", "", "make the claim with this size, such as 10Gi; one of that name must not exist")
	flags.StringVar(&o.asOf, "as-of", "", "take the newest verified copy of this time or before, such as 2026-05-01T12:00:00Z")
	flags.StringVar(&o.snapshot, "snapshot", "", "take the copy with this ID")
	flags.StringVar(&o.volume, "volume", "", "PersistentVolumeClaim that the copy is of, where the Backup has several")
	flags.StringArrayVar(&o.paths, "path", nil, "restore only this file or folder; may be repeated")
	flags.BoolVar(&o.overwrite, "overwrite", false, "accept a volume that holds something: files in the way are replaced, the rest stays")
	flags.BoolVar(&o.asRoot, "as-root", false, "run the pod as root, to give files back to several owners; the namespace must allow it")
	o.addFlags(cmd)
	command.MustComplete(cmd, "to", completeClaims(p))
	command.MustComplete(cmd, "volume", completeClaims(p))
	return cmd
}

func (o *restoreOptions) run(ctx context.Context, argument string) error {
	if err := o.check(); err != nil {
		return err
	}
	name, err := parseBackup(argument)
	if err != nil {
		return err
	}
	wanted, err := o.restore(name)
	if err != nil {
		return err
	}
	clients, backup, err := getBackupNamed(ctx, o.Program, argument)
	if err != nil {
		return err
	}
	made, err := clients.Restores().Create(ctx, wanted, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("make a Restore of %s in namespace %q: %w", backupRef(backup.Name), clients.Namespace, err)
	}
	return o.started(ctx, made, made.Name, restoreLister(clients))
}

// restore is the Restore that the flags ask for.
func (o *restoreOptions) restore(backup string) (*slipwayv1alpha1.Restore, error) {
	restore := &slipwayv1alpha1.Restore{
		ObjectMeta: metav1.ObjectMeta{GenerateName: generateName(backup, "restore")},
		Spec: slipwayv1alpha1.RestoreSpec{
			Backup: &slipwayv1alpha1.LocalReference{Name: backup}, Snapshot: o.snapshot, Overwrite: o.overwrite,
			Target: slipwayv1alpha1.RestoreTarget{Claim: strings.TrimPrefix(o.to, "pvc/")},
		},
	}
	spec := &restore.Spec
	switch {
	case o.to == "":
		return nil, command.UsageErrorf("--to is required: the PersistentVolumeClaim to write")
	case o.asOf != "" && o.snapshot != "":
		return nil, command.UsageErrorf("--as-of and --snapshot exclude each other")
	case o.create != "" && o.overwrite:
		return nil, command.UsageErrorf("--create and --overwrite exclude each other: a new volume is empty")
	}
	if o.asOf != "" {
		at, err := time.Parse(time.RFC3339, o.asOf)
		if err != nil {
			return nil, command.UsageErrorf("--as-of %q is not a time such as 2026-05-01T12:00:00Z", o.asOf)
		}
		spec.AsOf = &metav1.Time{Time: at}
	}
	if o.create != "" {
		size, err := resource.ParseQuantity(o.create)
		if err != nil {
			return nil, command.UsageErrorf("--create %q is not a size such as 10Gi", o.create)
		}
		spec.Target.Create = &slipwayv1alpha1.RestoreClaim{Size: size}
	}
	if o.volume != "" {
		spec.Volume = &slipwayv1alpha1.LocalReference{Name: o.volume}
	}
	for _, path := range o.paths {
		// In a copy every path begins at the root of the volume.
		spec.Paths = append(spec.Paths, slipwayv1alpha1.BackupPath(strings.Trim(path, "/")))
	}
	if o.asRoot {
		spec.Mover = &slipwayv1alpha1.BackupMover{RunAs: slipwayv1alpha1.MoverRoot}
	}
	return restore, nil
}

// completeClaims offers the names of the namespace's PersistentVolumeClaims.
func completeClaims(p *command.Program) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
		clients, err := p.Clients()
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		list, err := clients.Kube.CoreV1().PersistentVolumeClaims(clients.Namespace).List(cmd.Context(), metav1.ListOptions{})
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
	}
}
