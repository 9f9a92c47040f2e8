package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"

	"github.com/slipway-dev/slipway/hack/image/archive"
)

// tree makes an image of a folder.
func tree(arguments []string) error {
	var of archive.Tree
	var tag, output string
	flags := flag.NewFlagSet("tree", flag.ContinueOnError)
	flags.StringVar(&of.Folder, "folder", "", "folder that becomes the root directory (required)")
	flags.StringVar(&of.Architecture, "architecture", "", "Go's name of what the programs are for, such as amd64 (required)")
	flags.Var((*list)(&of.Env), "env", "setting of the environment, such as PATH=/usr/bin; may be given more than once")
	flags.IntVar(&of.User, "user", archive.DefaultUser, "numeric user and group that programs run as")
	flags.StringVar(&tag, "tag", "", "name of the image, such as postgres:dev (required)")
	flags.StringVar(&output, "output", "", "archive to write (required)")
	if err := flags.Parse(arguments); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return nil
		}
		return err
	}
	switch {
	case flags.NArg() > 0:
		return fmt.Errorf("unexpected argument %q", flags.Arg(0))
	case of.Folder == "" || of.Architecture == "" || tag == "" || output == "":
		return errors.New("--folder, --architecture, --tag and --output are required")
	case of.User <= 0:
		return errors.New("--user must be a positive number: root is not allowed")
	}
	for _, setting := range of.Env {
		if name, _, found := strings.Cut(setting, "="); !found || name == "" {
			return fmt.Errorf("--env %q is not NAME=value", setting)
		}
	}
	var err error
	if of.Created, err = sourceDate(os.Getenv("SOURCE_DATE_EPOCH")); err != nil {
		return err
	}
	image, err := archive.TreeImage(of)
	if err != nil {
		return err
	}
	digest, err := image.Digest()
	if err != nil {
		return err
	}
	if err := archive.Write(image, tag, output); err != nil {
		return err
	}
	fmt.Printf("%s %s %s\n", output, tag, digest)
	return nil
}
