package component

import (
	"context"
	"os"
	"path/filepath"
)

// Assets builds what envtest starts, and returns a folder that holds etcd,
// kube-apiserver and kubectl under exactly these names.
func (b Builder) Assets(ctx context.Context) (string, error) {
	folders, err := b.Build(ctx, []Component{Etcd(), Kubernetes()})
	if err != nil {
		return "", err
	}
	etcd, kubernetes := folders["etcd"], folders["kubernetes"]
	// The folder's name changes with what it points to, so it never has to be
	// changed while somebody uses it.
	folder := filepath.Join(b.Cache, "assets-"+suffix(etcd)+"-"+suffix(kubernetes))
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return "", err
	}
	targets := map[string]string{
		"etcd":           filepath.Join(etcd, "etcd"),
		"kube-apiserver": filepath.Join(kubernetes, "kubernetes"),
		"kubectl":        filepath.Join(kubernetes, "kubernetes"),
	}
	for name, target := range targets {
		relative, err := filepath.Rel(folder, target)
		if err != nil {
			return "", err
		}
		if err := os.Symlink(relative, filepath.Join(folder, name)); err != nil && !os.IsExist(err) {
			return "", err
		}
	}
	return folder, nil
}

func suffix(folder string) string {
	name := filepath.Base(folder)
	return name[len(name)-8:]
}
