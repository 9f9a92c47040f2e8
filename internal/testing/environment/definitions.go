package environment

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// folders remembers where modules are: to ask Go costs more than most tests.
type folders struct {
	mu    sync.Mutex
	known map[[2]string]string
}

// find returns the folder of a module that the module in a folder of the repository requires. It downloads it if it is missing.
func (f *folders) find(ctx context.Context, requirer, module string) (string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if folder, known := f.known[[2]string{requirer, module}]; known {
		return folder, nil
	}
	download := exec.CommandContext(ctx, "go", "mod", "download", module)
	find := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", module)
	download.Dir, find.Dir = filepath.Join(root(), requirer), filepath.Join(root(), requirer)
	if out, err := download.CombinedOutput(); err != nil {
		return "", fmt.Errorf("download the module %s: %w: %s", module, err, out)
	}
	out, err := find.Output()
	if err != nil {
		return "", fmt.Errorf("find the module %s: %w", module, err)
	}
	folder := strings.TrimSpace(string(out))
	if f.known == nil {
		f.known = map[[2]string]string{}
	}
	f.known[[2]string{requirer, module}] = folder
	return folder, nil
}

// definition is a CustomResourceDefinition as it was installed.
type definition struct {
	file       string
	uid        types.UID
	generation int64
}

// definitions are those that were installed last, by name.
type definitions struct {
	mu   sync.Mutex
	last map[string]definition
}

// installCRDs installs CustomResourceDefinitions out of files of a folder, or replaces them. Files whose definition is as this
// environment has installed it are left out.
func (e *Environment) installCRDs(ctx context.Context, folder string, files ...string) error {
	e.definitions.mu.Lock()
	defer e.definitions.mu.Unlock()
	options := envtest.CRDInstallOptions{ErrorIfPathMissing: true}
	for _, file := range files {
		path := filepath.Join(folder, file)
		now, err := e.definition(ctx, path)
		if err != nil {
			return err
		}
		if now.uid == "" || e.definitions.last[nameOf(path)] != now {
			options.Paths = append(options.Paths, path)
		}
	}
	if len(options.Paths) == 0 {
		return nil
	}
	if _, err := envtest.InstallCRDs(e.Config, options); err != nil {
		return err
	}
	if e.definitions.last == nil {
		e.definitions.last = map[string]definition{}
	}
	for _, path := range options.Paths {
		now, err := e.definition(ctx, path)
		if err != nil {
			return err
		}
		e.definitions.last[nameOf(path)] = now
	}
	return nil
}

// nameOf returns the name of the definition in a file, which is called group_plural.yaml as controller-gen calls it.
func nameOf(path string) string {
	group, plural, _ := strings.Cut(strings.TrimSuffix(filepath.Base(path), ".yaml"), "_")
	return plural + "." + group
}

// definition returns what the API server has of the definition in a file. Without one there is no UID.
func (e *Environment) definition(ctx context.Context, path string) (definition, error) {
	found := &metav1.PartialObjectMetadata{}
	found.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
	if err := e.Client.Get(ctx, types.NamespacedName{Name: nameOf(path)}, found); err != nil {
		return definition{}, client.IgnoreNotFound(err)
	}
	if found.DeletionTimestamp != nil {
		return definition{}, nil
	}
	return definition{file: path, uid: found.UID, generation: found.Generation}, nil
}
