// Command image puts a static program into a container image archive, without
// a container engine:
//
//	go run . build --binary bin/demo --tag slipway-demo:dev --output demo.tar
//
// Several programs, each for another architecture, become one image for all of them, in an OCI archive:
//
//	go run . index --binary amd64/demo --binary arm64/demo --tag slipway-demo:dev --output demo.oci.tar
//
// A folder becomes an image, too, for tests (hack/debian-image.sh):
//
//	go run . tree --folder root --architecture amd64 --env PATH=/usr/bin --tag postgres:dev --output postgres.tar
//
// SOURCE_DATE_EPOCH, in seconds since 1970, is the time of the image and its files. The default is 0.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/slipway-dev/slipway/hack/image/archive"
)

const usage = `usage: image build --binary <file> --tag <name:tag> --output <file.tar> [flags]
       image index --binary <file> --binary <file> ... --tag <name:tag> --output <file.tar> [flags]
       image tree --folder <folder> --architecture <name> --tag <name:tag> --output <file.tar> [flags]`

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
}

type buildOptions struct {
	binaries, licenses       list
	name, tag, output        string
	version, revision, title string
	user                     int
	created                  time.Time
}

// list is a flag that may be given more than once.
type list []string

func (l *list) String() string { return strings.Join(*l, ",") }

func (l *list) Set(value string) error {
	*l = append(*l, value)
	return nil
}

func run(arguments []string) error {
	if len(arguments) > 0 && arguments[0] == "tree" {
		return tree(arguments[1:])
	}
	if len(arguments) == 0 || (arguments[0] != "build" && arguments[0] != "index") {
		return errors.New(usage)
	}
	var options buildOptions
	flags := flag.NewFlagSet(arguments[0], flag.ContinueOnError)
	flags.Var(&options.binaries, "binary", "static Linux program to put into the image (required; index: one for each architecture)")
	flags.Var(&options.licenses, "license", "file to put into the folder /licenses of the image; may be given more than once")
	flags.StringVar(&options.tag, "tag", "", "name of the image, such as slipway-operator:dev (required)")
	flags.StringVar(&options.output, "output", "", "archive to write (required)")
	flags.StringVar(&options.name, "name", "", "file name of the program in the image (default: the first binary's own)")
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
	created, err := sourceDate(os.Getenv("SOURCE_DATE_EPOCH"))
	if err != nil {
		return err
	}
	options.created = created
	programs, err := read(options)
	if err != nil {
		return err
	}
	if arguments[0] == "index" {
		return index(options, programs)
	}
	return build(options, programs)
}

// sourceDate reads SOURCE_DATE_EPOCH.
func sourceDate(text string) (time.Time, error) {
	if text == "" {
		return time.Unix(0, 0).UTC(), nil
	}
	seconds, err := strconv.ParseInt(text, 10, 64)
	if err != nil || seconds < 0 {
		return time.Time{}, fmt.Errorf("SOURCE_DATE_EPOCH is %q; it must be a number of seconds since 1970", text)
	}
	return time.Unix(seconds, 0).UTC(), nil
}

// read returns what goes into the image, for each binary.
func read(options buildOptions) ([]archive.Program, error) {
	if len(options.binaries) == 0 || options.tag == "" || options.output == "" {
		return nil, errors.New("--binary, --tag and --output are required")
	}
	if options.user <= 0 {
		return nil, errors.New("--user must be a positive number: root is not allowed")
	}
	if options.name == "" {
		options.name = filepath.Base(options.binaries[0])
	}
	licenses := map[string][]byte{}
	for _, file := range options.licenses {
		content, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		licenses[filepath.Base(file)] = content
	}
	var programs []archive.Program
	for _, binary := range options.binaries {
		content, err := os.ReadFile(binary)
		if err != nil {
			return nil, err
		}
		programs = append(programs, archive.Program{
			Name:     options.name,
			Binary:   content,
			User:     options.user,
			Labels:   labels(options),
			Licenses: licenses,
			Created:  options.created,
		})
	}
	return programs, nil
}

func build(options buildOptions, programs []archive.Program) error {
	if len(programs) > 1 {
		return errors.New("build takes one --binary; index takes several")
	}
	image, err := archive.Image(programs[0])
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

func index(options buildOptions, programs []archive.Program) error {
	index, err := archive.Index(programs...)
	if err != nil {
		return err
	}
	digest, err := index.Digest()
	if err != nil {
		return err
	}
	if err := archive.WriteIndex(index, options.tag, options.output, options.created); err != nil {
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
