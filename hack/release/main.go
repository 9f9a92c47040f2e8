// Command release makes and checks the files of a release. hack/dist.sh calls it; docs/dev/release.md tells how.
//
//	release install --version v1.2.3 [--registry R] <dist/install.yaml >install.yaml
//	release plugin --binary FILE --license FILE --license FILE --output ARCHIVE
//	release chart-yaml --version v1.2.3 [--changelog FILE] [--crds FOLDER] [--registry R] CHART.YAML
//	release repack CHART.tgz OUTPUT.tgz
//	release krew --version v1.2.3 [--changelog FILE] --address URL FOLDER >slipway.yaml
//	release sums FOLDER
//	release sign --key FILE FOLDER
//	release inspect --version v1.2.3 FOLDER
//	release verify [--key FILE] [--version v1.2.3] FOLDER
//
// Commands that write or inspect archives take the time of everything in them from SOURCE_DATE_EPOCH.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/slipway-dev/slipway/hack/release/inspect"
	"github.com/slipway-dev/slipway/hack/release/metadata"
	"github.com/slipway-dev/slipway/hack/release/pack"
	"github.com/slipway-dev/slipway/hack/release/seal"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

// options are the flags of all commands.
type options struct {
	version, registry, changelog, crds, address string
	binary, output, key                         string
	licenses                                    list
}

// list is a flag that may be given more than once.
type list []string

func (l *list) String() string { return strings.Join(*l, ",") }

func (l *list) Set(value string) error {
	*l = append(*l, value)
	return nil
}

// command is what a command does with its flags and arguments.
type command struct {
	arguments int
	run       func(o options, arguments []string) error
}

var commands = map[string]command{
	"install":    {0, install},
	"plugin":     {0, plugin},
	"chart-yaml": {1, chartYAML},
	"repack":     {2, repack},
	"krew":       {1, krew},
	"sums":       {1, func(_ options, arguments []string) error { return seal.WriteSums(arguments[0]) }},
	"sign":       {1, func(o options, arguments []string) error { return seal.Sign(arguments[0], o.key) }},
	"inspect":    {1, inspectFolder},
	"verify":     {1, verify},
}

func run(arguments []string) error {
	if len(arguments) == 0 {
		return errors.New("which command? See docs/dev/release.md")
	}
	name := arguments[0]
	chosen, known := commands[name]
	if !known {
		return fmt.Errorf("unknown command %q", name)
	}
	var o options
	flags := flag.NewFlagSet("release "+name, flag.ContinueOnError)
	flags.StringVar(&o.version, "version", "", "version of the release, such as v1.2.3")
	flags.StringVar(&o.registry, "registry", "", "what goes before the names of images")
	flags.StringVar(&o.changelog, "changelog", "CHANGELOG.md", "the changelog")
	flags.StringVar(&o.crds, "crds", "config/crd", "folder with the CRDs")
	flags.StringVar(&o.address, "address", "", "where the files of the release will be found")
	flags.StringVar(&o.binary, "binary", "", "the program")
	flags.Var(&o.licenses, "license", "a license; may be given more than once")
	flags.StringVar(&o.output, "output", "", "file to write")
	flags.StringVar(&o.key, "key", "", "ed25519 key in PEM: the private one to sign, the public one to verify")
	if err := flags.Parse(arguments[1:]); err != nil {
		return err
	}
	if flags.NArg() != chosen.arguments {
		return fmt.Errorf("%s takes %d arguments, not %q", name, chosen.arguments, flags.Args())
	}
	return chosen.run(o, flags.Args())
}

func install(o options, _ []string) error {
	text, err := io.ReadAll(os.Stdin)
	if err != nil {
		return err
	}
	manifest, err := metadata.Install(string(text), o.registry, o.version)
	if err != nil {
		return err
	}
	_, err = fmt.Print(manifest)
	return err
}

func plugin(o options, _ []string) error {
	created, err := sourceDate()
	if err != nil {
		return err
	}
	var files []pack.File
	for _, path := range append([]string{o.binary}, o.licenses...) {
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		files = append(files, pack.File{Name: filepath.Base(path), Program: path == o.binary, Content: content})
	}
	write := pack.TarGz
	if strings.HasSuffix(o.output, ".zip") {
		write = pack.Zip
	}
	content, err := write(files, created)
	if err != nil {
		return err
	}
	return os.WriteFile(o.output, content, 0o644)
}

func repack(_ options, arguments []string) error {
	created, err := sourceDate()
	if err != nil {
		return err
	}
	content, err := os.ReadFile(arguments[0])
	if err != nil {
		return err
	}
	again, err := inspect.Repack(content, created)
	if err != nil {
		return err
	}
	return os.WriteFile(arguments[1], again, 0o644)
}

func chartYAML(o options, arguments []string) error {
	changes, err := changes(o)
	if err != nil {
		return err
	}
	chart, err := os.ReadFile(arguments[0])
	if err != nil {
		return err
	}
	chart, err = metadata.Chart(chart, o.crds, o.registry, o.version, changes)
	if err != nil {
		return err
	}
	return os.WriteFile(arguments[0], chart, 0o644)
}

func krew(o options, arguments []string) error {
	changes, err := changes(o)
	if err != nil {
		return err
	}
	manifest, err := metadata.Krew(arguments[0], o.address, o.version, changes)
	if err != nil {
		return err
	}
	_, err = fmt.Print(manifest)
	return err
}

func changes(o options) ([]metadata.Change, error) {
	text, err := os.ReadFile(o.changelog)
	if err != nil {
		return nil, err
	}
	return metadata.Changes(string(text), o.version)
}

func inspectFolder(o options, arguments []string) error {
	created, err := sourceDate()
	if err != nil {
		return err
	}
	return inspect.Release{Version: o.version, Created: created}.Folder(arguments[0])
}

func verify(o options, arguments []string) error {
	if err := seal.Verify(arguments[0], o.key, o.version); err != nil {
		return err
	}
	if o.key == "" {
		_, err := fmt.Println("all files match the checksums; without --key it was not checked who made the checksums")
		return err
	}
	_, err := fmt.Println("all files are as the owner of the key signed them")
	return err
}

// sourceDate is the time of everything in the release.
func sourceDate() (time.Time, error) {
	text := os.Getenv("SOURCE_DATE_EPOCH")
	seconds, err := strconv.ParseInt(text, 10, 64)
	if err != nil || seconds < 0 {
		return time.Time{}, fmt.Errorf("SOURCE_DATE_EPOCH is %q; it must be a number of seconds since 1970", text)
	}
	return time.Unix(seconds, 0).UTC(), nil
}
