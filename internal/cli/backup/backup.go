package backup

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/cli/command"
)

// parseBackup returns the name of the Backup in an argument: NAME or backup/NAME.
func parseBackup(argument string) (string, error) {
	name, ok := command.BackupKind.NameOf(argument)
	if !ok {
		return "", command.UsageErrorf("%q does not name a Backup: say backup/NAME", argument)
	}
	return name, nil
}

func oneBackup(_ *cobra.Command, args []string) error {
	if len(args) != 1 {
		return command.UsageErrorf("name one Backup: backup/NAME")
	}
	_, err := parseBackup(args[0])
	return err
}

// NewCommand makes the command backup with those below it.
func NewCommand(p *command.Program) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "backup",
		Short: "Run a Backup now, show its copies, or prove that they can be restored",
		Args:  command.NoArguments,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newBackupNowCommand(p), newBackupListCommand(p), newBackupDrillCommand(p))
	return cmd
}

const backupNowLong = `Run a Backup now, beside its schedule: it makes a BackupRun.

With --wait it shows the progress and ends when the run does: exit code 0 when every copy was read
back from the repository, 1 when the run failed, 2 when --timeout has passed. The run goes on when
the command is interrupted.`

const backupNowExample = `  # Before an upgrade
  kubectl slipway backup now shop-data --wait && kubectl apply -f shop.yaml`

func newBackupNowCommand(p *command.Program) *cobra.Command {
	o := &waitOptions{Program: p, output: command.FormatTable}
	cmd := &cobra.Command{
		Use:               "now backup/NAME",
		Short:             "Run a Backup now",
		Long:              backupNowLong,
		Example:           backupNowExample,
		Args:              oneBackup,
		ValidArgsFunction: p.CompleteOf(command.BackupKind),
		RunE:              func(cmd *cobra.Command, args []string) error { return o.backupNow(cmd.Context(), args[0]) },
	}
	o.addFlags(cmd)
	return cmd
}

func (o *waitOptions) backupNow(ctx context.Context, argument string) error {
	if err := o.check(); err != nil {
		return err
	}
	clients, backup, err := getBackupNamed(ctx, o.Program, argument)
	if err != nil {
		return err
	}
	run, err := clients.BackupRuns().Create(ctx, &slipwayv1alpha1.BackupRun{
		ObjectMeta: metav1.ObjectMeta{GenerateName: generateName(backup.Name, "now")},
		Spec:       slipwayv1alpha1.BackupRunSpec{Backup: backup.Name},
	}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("make a BackupRun of %s in namespace %q: %w", backupRef(backup.Name), clients.Namespace, err)
	}
	return o.started(ctx, run, run.Name, runLister(clients))
}

// maxTransferName bounds the names of BackupRuns and Restores, because Jobs are named after them.
const maxTransferName = 52

// generateName is what the name of a new object begins with, to which the API server adds five characters.
func generateName(backup, what string) string {
	end := "-" + what + "-"
	return strings.TrimRight(backup[:min(len(backup), maxTransferName-len(end)-5)], "-") + end
}

// getBackupNamed makes the clients and reads the Backup that an argument names.
func getBackupNamed(ctx context.Context, p *command.Program, argument string) (*command.Clients, *slipwayv1alpha1.Backup, error) {
	name, err := parseBackup(argument)
	if err != nil {
		return nil, nil, err
	}
	clients, err := p.Clients()
	if err != nil {
		return nil, nil, err
	}
	backup, err := clients.GetBackup(ctx, name)
	if err != nil {
		return nil, nil, err
	}
	return clients, backup, nil
}

// backupRef formats the name of a Backup for the output.
func backupRef(name string) string { return command.BackupKind.Ref(name) }
