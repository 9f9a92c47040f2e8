package backup

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/cli/command"
)

const backupDrillLong = `Ask for a drill of a Backup now, beside its schedule: its newest verified copy is restored to a
volume of its own, and compared with what was read from the source. The Backup needs
spec.verify.drill.

The drill begins when no run is under way. The condition DrillPassed says how it went:
kubectl describe backups.slipway.dev NAME.`

const backupDrillExample = `  # After the bucket was moved
  kubectl slipway backup drill shop-data`

func newBackupDrillCommand(p *command.Program) *cobra.Command {
	return &cobra.Command{
		Use:               "drill backup/NAME",
		Short:             "Prove that the newest copy of a Backup can be restored",
		Long:              backupDrillLong,
		Example:           backupDrillExample,
		Args:              oneBackup,
		ValidArgsFunction: p.CompleteOf(command.BackupKind),
		RunE:              func(cmd *cobra.Command, args []string) error { return runDrill(cmd.Context(), p, args[0]) },
	}
}

// runDrill writes the annotation that asks for a drill. Each time it has another value.
func runDrill(ctx context.Context, p *command.Program, argument string) error {
	clients, backup, err := getBackupNamed(ctx, p, argument)
	if err != nil {
		return err
	}
	if backup.Drill() == nil {
		return &command.ExitError{
			Code:    command.ExitNotReady,
			Message: fmt.Sprintf("%s has no spec.verify.drill: it says where to restore to", backupRef(backup.Name)),
		}
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]string{
		slipwayv1alpha1.AnnotationDrill: p.Clock.Now().UTC().Format(time.RFC3339Nano),
	}}})
	if err != nil {
		return err
	}
	if _, err := clients.Backups().Patch(ctx, backup.Name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		return fmt.Errorf("ask for a drill of %s in namespace %q: %w", backupRef(backup.Name), clients.Namespace, err)
	}
	_, err = fmt.Fprintf(
		p.Streams.Out, "%s: a drill was asked for; the condition DrillPassed will say how it went\n", backupRef(backup.Name),
	)
	return err
}
