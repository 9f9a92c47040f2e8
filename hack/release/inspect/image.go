package inspect

import (
	"archive/tar"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Image is one image of an archive: what it would run, on which machine.
type Image struct {
	Architecture string
	Program      []byte
	Licenses     map[string][]byte
}

type descriptor struct {
	MediaType   string            `json:"mediaType"`
	Digest      string            `json:"digest"`
	Size        int64             `json:"size"`
	Annotations map[string]string `json:"annotations"`
	Platform    struct {
		OS           string `json:"os"`
		Architecture string `json:"architecture"`
	} `json:"platform"`
}

type manifest struct {
	MediaType string       `json:"mediaType"`
	Manifests []descriptor `json:"manifests"`
	Config    descriptor   `json:"config"`
	Layers    []descriptor `json:"layers"`
}

type config struct {
	OS           string    `json:"os"`
	Architecture string    `json:"architecture"`
	Created      time.Time `json:"created"`
	Config       struct {
		User         string            `json:"User"`
		Entrypoint   []string          `json:"Entrypoint"`
		Cmd          []string          `json:"Cmd"`
		Env          []string          `json:"Env"`
		ExposedPorts map[string]any    `json:"ExposedPorts"`
		Volumes      map[string]any    `json:"Volumes"`
		Labels       map[string]string `json:"Labels"`
	} `json:"config"`
	RootFS struct {
		DiffIDs []string `json:"diff_ids"`
	} `json:"rootfs"`
}

// Images inspects an OCI archive, and returns the images in it.
func (r Release) Images(content []byte, program string) ([]Image, error) {
	blobs := map[string][]byte{}
	err := eachEntry(content, func(header *tar.Header, content []byte) error {
		switch {
		case !sameTime(header.ModTime, r.Created):
			return fmt.Errorf("%q is of %s", header.Name, header.ModTime.UTC())
		case header.Typeflag == tar.TypeDir && header.Mode == 0o755 && (header.Name == "blobs/" || header.Name == "blobs/sha256/"):
			return nil
		case header.Typeflag != tar.TypeReg || header.Mode != 0o644:
			return fmt.Errorf("%q is of type %q with mode %04o", header.Name, header.Typeflag, header.Mode)
		}
		blobs[header.Name] = content
		return nil
	})
	if err != nil {
		return nil, err
	}
	if string(blobs["oci-layout"]) == "" {
		return nil, errors.New("has no oci-layout")
	}
	delete(blobs, "oci-layout")
	images, err := r.index(blobs, program)
	if err != nil {
		return nil, err
	}
	for name := range blobs {
		return nil, fmt.Errorf("%q belongs to no image", name)
	}
	return images, nil
}

// index reads index.json and all that it leads to, and removes from blobs what it has read.
func (r Release) index(blobs map[string][]byte, program string) ([]Image, error) {
	var outer, inner manifest
	if err := json.Unmarshal(blobs["index.json"], &outer); err != nil {
		return nil, fmt.Errorf("index.json: %w", err)
	}
	delete(blobs, "index.json")
	if len(outer.Manifests) != 1 || outer.Manifests[0].Annotations["org.opencontainers.image.ref.name"] != r.Version {
		return nil, fmt.Errorf("index.json does not name one image with the tag %s", r.Version)
	}
	if err := take(blobs, outer.Manifests[0], &inner); err != nil {
		return nil, err
	}
	var images []Image
	var architectures []string
	for _, platform := range inner.Manifests {
		var one manifest
		if err := take(blobs, platform, &one); err != nil {
			return nil, err
		}
		if len(one.Layers) != 1 {
			return nil, fmt.Errorf("an image has %d layers, want one", len(one.Layers))
		}
		settings, err := blob(blobs, one.Config)
		if err != nil {
			return nil, err
		}
		layer, err := blob(blobs, one.Layers[0])
		if err != nil {
			return nil, err
		}
		image, err := r.image(settings, layer, program)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", platform.Platform.Architecture, err)
		}
		if platform.Platform.OS != "linux" || platform.Platform.Architecture != image.Architecture {
			return nil, fmt.Errorf("an image for %s is said to be for %s", image.Architecture, platform.Platform.Architecture)
		}
		images = append(images, image)
		architectures = append(architectures, image.Architecture)
	}
	if !slices.Equal(architectures, []string{"amd64", "arm64"}) {
		return nil, fmt.Errorf("it is for %v, want amd64 and arm64", architectures)
	}
	return images, nil
}

func take(blobs map[string][]byte, from descriptor, into any) error {
	content, err := blob(blobs, from)
	if err != nil {
		return err
	}
	return json.Unmarshal(content, into)
}

// blob removes the blob that a descriptor names, and checks its digest and size.
func blob(blobs map[string][]byte, from descriptor) ([]byte, error) {
	name := "blobs/sha256/" + strings.TrimPrefix(from.Digest, "sha256:")
	content, ok := blobs[name]
	if !ok {
		return nil, fmt.Errorf("%s is missing", from.Digest)
	}
	delete(blobs, name)
	if "sha256:"+sum(content) != from.Digest || int64(len(content)) != from.Size {
		return nil, fmt.Errorf("%s is not what its name says", from.Digest)
	}
	return content, nil
}

func sum(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

// image inspects a configuration and the only layer.
func (r Release) image(settings, layer []byte, program string) (Image, error) {
	var c config
	if err := json.Unmarshal(settings, &c); err != nil {
		return Image{}, err
	}
	unpacked, err := gunzip(layer)
	if err != nil {
		return Image{}, err
	}
	run := c.Config
	switch {
	case c.OS != "linux" || !sameTime(c.Created, r.Created):
		err = fmt.Errorf("it is for %s and of %s", c.OS, c.Created)
	case run.User != "65532:65532" || !slices.Equal(run.Entrypoint, []string{"/" + program}) || len(run.Cmd) > 0:
		err = fmt.Errorf("it runs %v %v as %s", run.Entrypoint, run.Cmd, run.User)
	case !slices.Equal(run.Env, []string{"PATH=/"}) || len(run.ExposedPorts) > 0 || len(run.Volumes) > 0:
		err = fmt.Errorf("it has the environment %v, ports %v and volumes %v", run.Env, run.ExposedPorts, run.Volumes)
	case run.Labels["org.opencontainers.image.version"] != r.Version:
		err = fmt.Errorf("its label says version %q", run.Labels["org.opencontainers.image.version"])
	case !slices.Equal(c.RootFS.DiffIDs, []string{"sha256:" + sum(unpacked)}):
		err = errors.New("its layer is not the one that its configuration names")
	}
	if err != nil {
		return Image{}, err
	}
	image, err := r.layer(unpacked, program)
	if err != nil {
		return Image{}, err
	}
	image.Architecture = c.Architecture
	return image, checkProgram(image.Program, c.OS, c.Architecture)
}

// layer inspects the files of an image. Their names, modes and order are fixed.
func (r Release) layer(unpacked []byte, program string) (Image, error) {
	want := []string{"etc/ 5 0755", "etc/group 0 0644", "etc/passwd 0 0644", "tmp/ 5 1777", "licenses/ 5 0755"}
	for _, name := range LicenseFiles {
		want = append(want, "licenses/"+name+" 0 0644")
	}
	want = append(want, program+" 0 0755")
	image := Image{Licenses: map[string][]byte{}}
	var got []string
	err := eachEntry(unpacked, func(header *tar.Header, content []byte) error {
		if !sameTime(header.ModTime, r.Created) {
			return fmt.Errorf("%q is of %s", header.Name, header.ModTime.UTC())
		}
		got = append(got, fmt.Sprintf("%s %c %04o", header.Name, header.Typeflag, header.Mode))
		if license, ok := strings.CutPrefix(header.Name, "licenses/"); ok && license != "" {
			image.Licenses[license] = content
			if len(content) == 0 {
				return fmt.Errorf("%s is empty", header.Name)
			}
		}
		if header.Name == program {
			image.Program = content
		}
		return nil
	})
	if err != nil {
		return Image{}, err
	}
	if !slices.Equal(got, want) {
		return Image{}, fmt.Errorf("its files are %q, want %q", got, want)
	}
	return image, nil
}

// dockerArchive inspects the archive of one image, as docker save writes it.
func (r Release) dockerArchive(content []byte, program, architecture string) error {
	files := map[string][]byte{}
	err := eachEntry(content, func(header *tar.Header, content []byte) error {
		if header.Typeflag != tar.TypeReg || header.Mode != 0o644 || !sameTime(header.ModTime, time.Unix(0, 0)) {
			return fmt.Errorf("%q is of type %q with mode %04o and of %s", header.Name, header.Typeflag, header.Mode, header.ModTime.UTC())
		}
		files[header.Name] = content
		return nil
	})
	if err != nil {
		return err
	}
	var images []struct {
		Config           string
		RepoTags, Layers []string
	}
	if err := json.Unmarshal(files["manifest.json"], &images); err != nil {
		return fmt.Errorf("manifest.json: %w", err)
	}
	if len(images) != 1 || len(images[0].Layers) != 1 || len(files) != 3 {
		return fmt.Errorf("it has %d images and %d files, want one image of one layer", len(images), len(files))
	}
	if tags := images[0].RepoTags; len(tags) != 1 || !strings.HasSuffix("/"+tags[0], "/"+program+":"+r.Version) {
		return fmt.Errorf("it is called %v, want %s:%s", tags, program, r.Version)
	}
	image, err := r.image(files[images[0].Config], files[images[0].Layers[0]], program)
	if err == nil && image.Architecture != architecture {
		err = fmt.Errorf("it is for %s", image.Architecture)
	}
	return err
}
