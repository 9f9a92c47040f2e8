// Command image puts a static program into a container image archive, without
// a container engine:
//
//	go run . build --binary bin/demo --tag slipway-demo:dev --output demo.tar
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"github.com/slipway-dev/slipway/hack/image/archive"
)

const usage = `usage: image build --binary <file> --tag <name:tag> --output <file.tar> [flags]`

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
}

type buildOptions struct {
	binary, name, tag, output string
	version, revision, title  string
	user                      int
}

func run(arguments []string) error {
	if len(arguments) == 0 || arguments[0] != "build" {
		return errors.New(usage)
	}
	var options buildOptions
	flags := flag.NewFlagSet("build", flag.ContinueOnError)
	flags.StringVar(&options.binary, "binary", "", "static Linux program to put into the image (required)")
	flags.StringVar(&options.tag, "tag", "", "name of the image, such as slipway-operator:dev (required)")
	flags.StringVar(&options.output, "output", "", "archive to write (required)")
	flags.StringVar(&options.name, "name", "", "file name of the program in the image (default: the binary's own)")
	flags.IntVar(&options.user, "user", archive.DefaultUser, "numeric user and group the program runs as")
	flags.StringVar(&options.title, "title", "", "label org.opencontainers.image.title (default: the program's name)")
	flags.StringVar(&options.version, "version", "dev", "label org.opencontainers.image.version")
	flags.StringVar(&options.revision, "revision", "", "label org.opencontainers.image.revision")
	if err := flags.Parse(arguments[1:]); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return nil
		}
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	return build(options)
}

func build(options buildOptions) error {
	if options.binary == "" || options.tag == "" || options.output == "" {
		return errors.New("--binary, --tag and --output are required")
	}
	if options.user <= 0 {
		return errors.New("--user must be a positive number: root is not allowed")
	}
	if options.name == "" {
		options.name = filepath.Base(options.binary)
	}
	content, err := os.ReadFile(options.binary)
	if err != nil {
		return err
	}
	image, err := archive.Image(archive.Program{
		Name:   options.name,
		Binary: content,
		User:   options.user,
		Labels: labels(options),
	})
	if err != nil {
		return err
	}
	digest, err := image.Digest()
	if err != nil {
		return err
	}
	if err := archive.Write(image, options.tag, options.output); err != nil {
		return err
	}
	fmt.Printf("%s %s %s\n", options.output, options.tag, digest)
	return nil
}

func labels(options buildOptions) map[string]string {
	title := options.title
	if title == "" {
		title = options.name
	}
	all := map[string]string{
		"org.opencontainers.image.title":    title,
		"org.opencontainers.image.version":  options.version,
		"org.opencontainers.image.licenses": "Apache-2.0",
		"org.opencontainers.image.source":   "https://github.com/slipway-dev/slipway",
	}
	if options.revision != "" {
		all["org.opencontainers.image.revision"] = options.revision
	}
	return all
}
