package webapp

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/controller/webapp/desired"
	"github.com/slipway-dev/slipway/internal/kit/outcome"
)

// config is the content of the Secrets and ConfigMaps that a spec refers to.
type config struct {
	// hash identifies the content of the keys that are used, empty without references.
	hash string
	// versions is the value of the annotation that records where hash comes from.
	versions string
	// missing is why the content is not complete, or cannot be had, or nil. hash is not set then.
	missing *outcome.Error
	// seen are the Secrets and ConfigMaps as the cache has them, without a version where it
	// has none.
	seen []client.Object
}

// configRef is one use of a Secret or ConfigMap by a spec.
type configRef struct {
	// kind is Secret or ConfigMap.
	kind string
	name string
	// keys are the keys that are used, sorted; nil: all.
	keys     []string
	optional bool
	// field is where the spec refers to it, for messages.
	field string
}

// id names what is used, as the key of digests.
func (c configRef) id() string {
	if c.keys == nil {
		return c.kind + "/" + c.name
	}
	return c.kind + "/" + c.name + "#" + strings.Join(c.keys, ",")
}

// digest is the content of one use at one version of the object, as it is recorded.
type digest struct {
	version string
	// hash says by its first part whether it was made with a key, and with which.
	hash string
	// missingKey is a key that is used and not there.
	missingKey string
	// missingUnknown reports whether missingKey was not recorded: v0.1.0 did not. Ends in v0.4.0.
	missingUnknown bool
}

// configRefs lists every use of a Secret or ConfigMap, in the order of the spec.
func configRefs(spec slipwayv1alpha1.WebAppSpec) []configRef {
	var refs []configRef
	add := func(field string, secret, configMap *slipwayv1alpha1.LocalReference, keys []string, optional bool) {
		ref := configRef{keys: slices.Sorted(slices.Values(keys)), optional: optional}
		switch {
		case secret != nil:
			ref.kind, ref.name, ref.field = "Secret", secret.Name, field+".secretRef"
		case configMap != nil:
			ref.kind, ref.name, ref.field = "ConfigMap", configMap.Name, field+".configMapRef"
		default:
			return
		}
		refs = append(refs, ref)
	}
	for i, s := range spec.EnvFrom {
		add(fmt.Sprintf("spec.envFrom[%d]", i), s.SecretRef, s.ConfigMapRef, s.Keys, s.Optional)
	}
	for i, s := range spec.Files {
		add(fmt.Sprintf("spec.files[%d]", i), s.SecretRef, s.ConfigMapRef, s.Keys, s.Optional)
	}
	return refs
}

// resolveConfig hashes the content that the spec refers to. Versions come from the
// cache; content is read live, and only of a version that was not hashed before.
func (r *Reconciler) resolveConfig(ctx context.Context, s *scope) error {
	refs := configRefs(s.app.Spec)
	if len(refs) == 0 {
		return nil
	}
	recorded := recordedDigests(s.deployment.Annotations[desired.AnnotationConfigVersions])
	uses := make([]use, len(refs))
	for i, ref := range refs {
		var err error
		if uses[i], err = r.use(ctx, s, ref, recorded); err != nil {
			return err
		}
		if s.config.missing = uses[i].missing(); s.config.missing != nil {
			return nil
		}
		if s.config.missing = uses[i].replaced(recorded, s.pods); s.config.missing != nil {
			return nil
		}
	}
	digests, ok := asRecorded(uses, recorded)
	if !ok {
		if err := r.readRest(ctx, s, uses); err != nil || s.config.missing != nil {
			return err
		}
		var err error
		if digests, err = choose(uses, recorded, s.deployment.Spec.Template.Annotations[slipwayv1alpha1.AnnotationConfigHash]); err != nil {
			return err
		}
	}
	s.config.hash = combine(digests)
	s.config.versions = encodeDigests(digests)
	if combine(recorded) == s.config.hash {
		// The same content at newer versions is not worth a write.
		s.config.versions = s.deployment.Annotations[desired.AnnotationConfigVersions]
	}
	return nil
}

// use finds out about one use what is known without reading its content, and reads that
// where nothing is.
func (r *Reconciler) use(ctx context.Context, s *scope, ref configRef, recorded map[string]digest) (use, error) {
	found := use{ref: ref}
	metadata := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: s.app.Namespace, Name: ref.name}}
	metadata.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(ref.kind))
	s.config.seen = append(s.config.seen, metadata)
	if err := r.kit.Client.Get(ctx, client.ObjectKeyFromObject(metadata), metadata); err != nil {
		if apierrors.IsNotFound(err) {
			return found, nil
		}
		return found, fmt.Errorf("read %s %q: %w", ref.kind, ref.name, err)
	}
	if known, ok := r.digests.Get(memoOf(s.app.Namespace, ref)); ok && known.(*content).version == metadata.ResourceVersion {
		found.read = known.(*content)
	}
	known, ok := recorded[ref.id()]
	ok = ok && known.version == metadata.ResourceVersion && (!known.missingUnknown || ref.optional)
	switch {
	case ok && !found.read.contradicts(known):
		found.recorded = &known
		return found, nil
	case found.read != nil:
		return found, nil
	}
	var err error
	if found.read, err = r.read(ctx, s.app.Namespace,
		ref); err == nil && found.read != nil && found.read.version == metadata.ResourceVersion {
		// It need not be read again before a write.
		r.kit.Fresh.Saw(metadata)
	}
	return found, err
}

// readRest reads the content of which only what is recorded is known.
func (r *Reconciler) readRest(ctx context.Context, s *scope, uses []use) error {
	for i := range uses {
		if uses[i].recorded == nil || uses[i].read != nil {
			continue
		}
		read, err := r.read(ctx, s.app.Namespace, uses[i].ref)
		if err != nil {
			return err
		}
		uses[i] = use{ref: uses[i].ref, read: read}
		if s.config.missing = uses[i].missing(); s.config.missing != nil {
			return nil
		}
	}
	return nil
}

// read reads the content of one use from the API server and hashes it. It returns nil when
// the object does not exist.
func (r *Reconciler) read(ctx context.Context, namespace string, ref configRef) (*content, error) {
	data, found, err := r.readContent(ctx, types.NamespacedName{Namespace: namespace, Name: ref.name}, ref)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, outcome.Classify(fmt.Sprintf("%s %q", ref.kind, ref.name), err)
	}
	found.plain, found.missingKey = hashOf(sha256.New(), ref, data)
	key, err := r.keys.For(ctx, namespace)
	if err != nil {
		// It is not needed for content that has not changed.
		found.noKey = err
		return found, nil
	}
	mac := key.New(ref.id())
	hashOf(mac, ref, data)
	found.keyed = key.Text(mac)
	r.digests.Add(memoOf(namespace, ref), found)
	return found, nil
}

func memoOf(namespace string, ref configRef) string { return namespace + "/" + ref.id() }

// readContent reads the content of a Secret or ConfigMap from the API server.
func (r *Reconciler) readContent(ctx context.Context, key types.NamespacedName, ref configRef) (map[string][]byte, *content, error) {
	if ref.kind == "Secret" {
		secret := &corev1.Secret{}
		if err := r.kit.Live.Get(ctx, key, secret); err != nil {
			return nil, nil, err
		}
		return secret.Data, contentOf(secret, secret.Immutable), nil
	}
	configMap := &corev1.ConfigMap{}
	if err := r.kit.Live.Get(ctx, key, configMap); err != nil {
		return nil, nil, err
	}
	data := make(map[string][]byte, len(configMap.Data)+len(configMap.BinaryData))
	for k, v := range configMap.Data {
		data[k] = []byte(v)
	}
	for k, v := range configMap.BinaryData {
		data[k] = v
	}
	return data, contentOf(configMap, configMap.Immutable), nil
}

// hashOf hashes the keys that are used, and returns the hash as it is written without a
// key, and a key that is missing. Lengths are part of it, so that no two contents look
// alike.
func hashOf(sum hash.Hash, ref configRef, data map[string][]byte) (plain, missingKey string) {
	keys := ref.keys
	if keys == nil {
		keys = slices.Sorted(maps.Keys(data))
	}
	for _, key := range keys {
		value, ok := data[key]
		if !ok {
			missingKey = key
			continue
		}
		fmt.Fprintf(sum, "%d:%s=%d:", len(key), key, len(value))
		sum.Write(value)
	}
	return hex.EncodeToString(sum.Sum(nil)[:10]), missingKey
}

// combine hashes the digests of all uses. That needs no key: what it hashes can be read
// beside it.
func combine(digests map[string]digest) string {
	sum := sha256.New()
	for _, id := range slices.Sorted(maps.Keys(digests)) {
		fmt.Fprintf(sum, "%s=%s\n", id, digests[id].hash)
	}
	return hex.EncodeToString(sum.Sum(nil)[:10])
}

// missingMark separates the version of an object from the key that it lacks. A version
// is a number, and v0.1.0, which knows no mark, finds another version and reads again.
const missingMark = ":"

// encodeDigests writes digests as {"Secret/db": "<resourceVersion>/<hash>"}, and
// those of certain keys as {"Secret/db#A,B": "<resourceVersion>:<missing key>/<hash>"}.
func encodeDigests(digests map[string]digest) string {
	record := make(map[string]string, len(digests))
	for id, d := range digests {
		version := d.version
		if usesKeys(id) && !d.missingUnknown {
			version += missingMark + d.missingKey
		}
		record[id] = version + "/" + d.hash
	}
	raw, err := json.Marshal(record)
	if err != nil {
		// A map of strings can always be encoded.
		return ""
	}
	return string(raw)
}

// recordedDigests reads what encodeDigests wrote. Whatever else stands there counts
// as nothing: the content is then read again.
func recordedDigests(annotation string) map[string]digest {
	record := map[string]string{}
	if json.Unmarshal([]byte(annotation), &record) != nil {
		return nil
	}
	digests := make(map[string]digest, len(record))
	for id, text := range record {
		version, hash, _ := strings.Cut(text, "/")
		version, missing, marked := strings.Cut(version, missingMark)
		digests[id] = digest{version: version, hash: hash}
		if usesKeys(id) {
			digests[id] = digest{version: version, hash: hash, missingKey: missing, missingUnknown: !marked}
		}
	}
	return digests
}

// usesKeys reports whether an id is of a use of certain keys, which may be missing.
func usesKeys(id string) bool { return strings.Contains(id, "#") }
