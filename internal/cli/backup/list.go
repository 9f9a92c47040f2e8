package backup

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/cli/command"
	"github.com/slipway-dev/slipway/internal/text"
)

const backupListLong = `Show the runs of a Backup, or of all Backups of the namespace, with a line for each copy, the newest first.

Of each Backup the last runs are kept (spec.historyLimit). The repository may hold older copies.`

const backupListExample = `  # Which copies are there, and when were they verified?
  kubectl slipway backup ls shop-data

  # For a program
  kubectl slipway backup ls -o json`

func newBackupListCommand(p *command.Program) *cobra.Command {
	output := command.FormatTable
	cmd := &cobra.Command{
		Use:               "ls [backup/NAME]",
		Short:             "Show the runs of Backups, and their copies",
		Long:              backupListLong,
		Example:           backupListExample,
		ValidArgsFunction: p.CompleteOf(command.BackupKind),
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			return oneBackup(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return listBackups(cmd.Context(), p, args, output)
		},
	}
	output.AddFlag(cmd)
	return cmd
}

func listBackups(ctx context.Context, p *command.Program, args []string, output command.Format) error {
	var clients *command.Clients
	var backups []slipwayv1alpha1.Backup
	if len(args) == 1 {
		var backup *slipwayv1alpha1.Backup
		var err error
		if clients, backup, err = getBackupNamed(ctx, p, args[0]); err != nil {
			return err
		}
		backups = append(backups, *backup)
	} else {
		var err error
		if clients, err = p.Clients(); err != nil {
			return err
		}
		list, err := clients.Backups().List(ctx, metav1.ListOptions{})
		if err != nil {
			return fmt.Errorf("list Backups in namespace %q: %w", clients.Namespace, err)
		}
		backups = list.Items
	}
	runs, err := clients.BackupRuns().List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list BackupRuns in namespace %q: %w", clients.Namespace, err)
	}
	views := backupViews(backups, runs.Items)
	if output != command.FormatTable {
		return output.Print(p.Streams.Out, views)
	}
	if len(views) == 0 {
		_, err := fmt.Fprintf(p.Streams.Out, "There is no Backup in namespace %q.\n", clients.Namespace)
		return err
	}
	return printBackups(p.Streams.Out, views, p.Clock.Now())
}

// backupView is a Backup with its runs.
type backupView struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
	Reason    string `json:"reason,omitempty"`
	// LastBackupTime is when the source of the newest verified copy was read.
	LastBackupTime *metav1.Time `json:"lastBackupTime,omitempty"`
	NextRunTime    *metav1.Time `json:"nextRunTime,omitempty"`
	Runs           []runView    `json:"runs"`
}

// runView is a run with its copies.
type runView struct {
	Name         string                              `json:"name"`
	Phase        slipwayv1alpha1.BackupPhase         `json:"phase,omitempty"`
	Reason       string                              `json:"reason,omitempty"`
	Message      string                              `json:"message,omitempty"`
	Created      metav1.Time                         `json:"created"`
	Duration     string                              `json:"duration,omitempty"`
	Verification *slipwayv1alpha1.BackupVerification `json:"verification,omitempty"`
	Volumes      []slipwayv1alpha1.BackupVolume      `json:"volumes,omitempty"`
}

func backupViews(backups []slipwayv1alpha1.Backup, runs []slipwayv1alpha1.BackupRun) []backupView {
	views := []backupView{}
	for i := range backups {
		b := &backups[i]
		view := backupView{
			Name: b.Name, Namespace: b.Namespace, Reason: b.Status.Summary.Reason,
			LastBackupTime: b.Status.LastBackupTime, NextRunTime: b.Status.NextRunTime, Runs: []runView{},
		}
		for j := range runs {
			if runs[j].IsOf(b) {
				view.Runs = append(view.Runs, viewOfRun(&runs[j]))
			}
		}
		slices.SortFunc(view.Runs, func(a, b runView) int {
			return cmp.Or(b.Created.Compare(a.Created.Time), cmp.Compare(b.Name, a.Name))
		})
		views = append(views, view)
	}
	slices.SortFunc(views, func(a, b backupView) int { return cmp.Compare(a.Name, b.Name) })
	return views
}

func viewOfRun(run *slipwayv1alpha1.BackupRun) runView {
	view := runView{
		Name: run.Name, Phase: run.Status.Phase, Reason: run.Status.Reason, Message: run.Status.Message,
		Created: run.CreationTimestamp, Verification: run.Status.Verification, Volumes: run.Status.Volumes,
	}
	if start, end := run.Status.StartTime, run.Status.CompletionTime; start != nil && end != nil {
		view.Duration = duration.HumanDuration(end.Sub(start.Time))
	}
	return view
}

func printBackups(out io.Writer, views []backupView, now time.Time) error {
	for i, view := range views {
		if i > 0 {
			if _, err := fmt.Fprintln(out); err != nil {
				return err
			}
		}
		if _, err := fmt.Fprintln(out, backupLine(view, now)); err != nil {
			return err
		}
		if len(view.Runs) == 0 {
			continue
		}
		rows := [][]string{{"RUN", "PHASE", "VOLUME", "SNAPSHOT", "VERIFIED", "FILES", "SIZE", "ADDED", "DURATION", "AGE"}}
		for _, run := range view.Runs {
			rows = append(rows, runRows(run, now)...)
		}
		if err := command.Table(out, rows); err != nil {
			return err
		}
	}
	return nil
}

// backupLine says of a Backup what matters most: how old the newest verified copy is.
func backupLine(view backupView, now time.Time) string {
	line := backupRef(view.Name) + ": "
	if view.LastBackupTime == nil {
		line += "no verified copy"
	} else {
		line += fmt.Sprintf("the newest verified copy is of %s ago", command.Age(*view.LastBackupTime, now))
	}
	if next := view.NextRunTime; next != nil {
		line += ", the next run starts in " + duration.HumanDuration(max(next.Sub(now), 0))
	}
	if view.Reason != "" {
		line += fmt.Sprintf(" (%s)", view.Reason)
	}
	return command.Printable(line)
}

// runRows are the lines of a run: one for each of its volumes.
func runRows(run runView, now time.Time) [][]string {
	phase := command.OrNone(string(run.Phase))
	if run.Reason != "" && run.Phase != slipwayv1alpha1.BackupCompleted {
		phase += " (" + run.Reason + ")"
	}
	first := []string{run.Name, phase}
	last := []string{command.OrDash(run.Duration), command.Age(run.Created, now)}
	if len(run.Volumes) == 0 {
		return [][]string{slices.Concat(first, []string{"-", "-", "-", "-", "-", "-"}, last)}
	}
	var rows [][]string
	for _, volume := range run.Volumes {
		copied := []string{volume.Claim, "-", verifiedText(run, volume, now), "-", "-", "-"}
		if volume.SnapshotID != "" {
			copied[1] = volume.SnapshotID
			copied[3], copied[4], copied[5] = fmt.Sprint(volume.Files), text.Bytes(volume.Bytes), text.Bytes(volume.AddedBytes)
		}
		rows = append(rows, slices.Concat(first, copied, last))
	}
	return rows
}

// verifiedText says how and when a copy was read back.
func verifiedText(run runView, volume slipwayv1alpha1.BackupVolume, now time.Time) string {
	switch {
	case !volume.Verified:
		return "no"
	case run.Verification == nil: // those of the other volumes are still to come
		return "yes"
	default:
		return fmt.Sprintf("%s, %s ago", run.Verification.Mode, command.Age(run.Verification.Time, now))
	}
}
