package command

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"
)

// versionView is what version shows.
type versionView struct {
	Version  string `json:"version"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

// NewVersionCommand makes the command version.
func NewVersionCommand(p *Program) *cobra.Command {
	output := FormatTable
	cmd := &cobra.Command{
		Use:               "version",
		Short:             "Show the version of this program",
		Example:           "  kubectl slipway version",
		Args:              NoArguments,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(*cobra.Command, []string) error {
			view := versionView{Version: p.Version, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
			if output != FormatTable {
				return output.Print(p.Streams.Out, view)
			}
			_, err := fmt.Fprintf(p.Streams.Out, "kubectl slipway %s (%s, %s)\n", view.Version, view.Go, view.Platform)
			return err
		},
	}
	output.AddFlag(cmd)
	return cmd
}
