//go:build linux

package main

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"
	"google.golang.org/protobuf/types/known/wrapperspb"
	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
)

const (
	driverName    = "csi.localkube.slipway.dev"
	driverVersion = "1.0.0"
	// defaultSize is that of a volume of which nobody says a size.
	defaultSize = 64 << 20
)

// driver serves the three services of CSI. One request is worked on at a time.
type driver struct {
	csi.UnimplementedIdentityServer
	csi.UnimplementedControllerServer
	csi.UnimplementedNodeServer

	root, node string
	mu         sync.Mutex
}

func (d *driver) register(server *grpc.Server) {
	csi.RegisterIdentityServer(server, d)
	csi.RegisterControllerServer(server, d)
	csi.RegisterNodeServer(server, d)
}

// serve serves a socket until the context ends.
func serve(ctx context.Context, socket string, register func(*grpc.Server)) error {
	if err := os.MkdirAll(filepath.Dir(socket), 0o755); err != nil {
		return err
	}
	if err := os.Remove(socket); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "unix", socket)
	if err != nil {
		return err
	}
	server := grpc.NewServer()
	register(server)
	context.AfterFunc(ctx, server.Stop)
	return server.Serve(listener)
}

// registrar tells the kubelet where the driver is.
type registrar struct {
	registration.UnimplementedRegistrationServer

	socket string
}

func serveRegistration(ctx context.Context, folder, socket string) error {
	return serve(ctx, filepath.Join(folder, driverName+"-reg.sock"), func(server *grpc.Server) {
		registration.RegisterRegistrationServer(server, &registrar{socket: socket})
	})
}

func (r *registrar) GetInfo(context.Context, *registration.InfoRequest) (*registration.PluginInfo, error) {
	return &registration.PluginInfo{
		Type: registration.CSIPlugin, Name: driverName, Endpoint: r.socket, SupportedVersions: []string{driverVersion},
	}, nil
}

func (r *registrar) NotifyRegistrationStatus(
	_ context.Context, told *registration.RegistrationStatus,
) (*registration.RegistrationStatusResponse, error) {
	if !told.PluginRegistered {
		return nil, status.Error(codes.Internal, told.Error)
	}
	return &registration.RegistrationStatusResponse{}, nil
}

func (d *driver) GetPluginInfo(context.Context, *csi.GetPluginInfoRequest) (*csi.GetPluginInfoResponse, error) {
	return &csi.GetPluginInfoResponse{Name: driverName, VendorVersion: driverVersion}, nil
}

func (d *driver) GetPluginCapabilities(context.Context, *csi.GetPluginCapabilitiesRequest) (*csi.GetPluginCapabilitiesResponse, error) {
	return &csi.GetPluginCapabilitiesResponse{Capabilities: []*csi.PluginCapability{{
		Type: &csi.PluginCapability_Service_{Service: &csi.PluginCapability_Service{Type: csi.PluginCapability_Service_CONTROLLER_SERVICE}},
	}}}, nil
}

func (d *driver) Probe(context.Context, *csi.ProbeRequest) (*csi.ProbeResponse, error) {
	return &csi.ProbeResponse{Ready: wrapperspb.Bool(true)}, nil
}

func (d *driver) ControllerGetCapabilities(
	context.Context, *csi.ControllerGetCapabilitiesRequest,
) (*csi.ControllerGetCapabilitiesResponse, error) {
	response := &csi.ControllerGetCapabilitiesResponse{}
	for _, can := range []csi.ControllerServiceCapability_RPC_Type{
		csi.ControllerServiceCapability_RPC_CREATE_DELETE_VOLUME, csi.ControllerServiceCapability_RPC_CREATE_DELETE_SNAPSHOT,
	} {
		response.Capabilities = append(response.Capabilities, &csi.ControllerServiceCapability{
			Type: &csi.ControllerServiceCapability_Rpc{Rpc: &csi.ControllerServiceCapability_RPC{Type: can}},
		})
	}
	return response, nil
}

// unsupported says what of the capabilities the driver cannot do, or nothing.
func unsupported(capabilities []*csi.VolumeCapability) string {
	for _, capability := range capabilities {
		switch {
		case capability.GetBlock() != nil:
			return "block volumes are not supported"
		case capability.GetMount() == nil:
			return "neither a mount nor a block volume is asked for"
		}
	}
	return ""
}

func (d *driver) CreateVolume(ctx context.Context, req *csi.CreateVolumeRequest) (*csi.CreateVolumeResponse, error) {
	if req.Name == "" || len(req.VolumeCapabilities) == 0 {
		return nil, status.Error(codes.InvalidArgument, "name and volume_capabilities are required")
	}
	if problem := unsupported(req.VolumeCapabilities); problem != "" {
		return nil, status.Error(codes.InvalidArgument, problem)
	}
	size := req.GetCapacityRange().GetRequiredBytes()
	limit := req.GetCapacityRange().GetLimitBytes()
	if size == 0 {
		size = defaultSize
		if limit > 0 {
			size = min(size, limit)
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	wanted := record{ID: idOf(req.Name), Name: req.Name, Size: size, Made: time.Now().UTC()}
	from := ""
	if source := req.GetVolumeContentSource(); source != nil {
		snapshot := source.GetSnapshot()
		if snapshot == nil {
			return nil, status.Error(codes.InvalidArgument, "volumes are made from snapshots, and not from other volumes")
		}
		found, err := d.find(kindSnapshot, snapshot.SnapshotId)
		switch {
		case err != nil:
			return nil, err
		case found == nil:
			return nil, status.Errorf(codes.NotFound, "there is no snapshot %q", snapshot.SnapshotId)
		case size < found.Size:
			return nil, status.Errorf(codes.OutOfRange, "the snapshot needs %d bytes", found.Size)
		}
		wanted.Source, from = found.ID, d.path(kindSnapshot, found.ID)
	}
	existing, err := d.find(kindVolume, wanted.ID)
	switch {
	case err != nil:
		return nil, err
	case existing == nil:
		if err := d.make(ctx, kindVolume, wanted, from); err != nil {
			return nil, err
		}
	case existing.Size < size || limit > 0 && existing.Size > limit || existing.Source != wanted.Source:
		return nil, status.Errorf(codes.AlreadyExists, "there is another volume %q", req.Name)
	default:
		wanted = *existing
	}
	return &csi.CreateVolumeResponse{Volume: &csi.Volume{
		VolumeId: wanted.ID, CapacityBytes: wanted.Size, ContentSource: req.VolumeContentSource,
	}}, nil
}

func (d *driver) DeleteVolume(ctx context.Context, req *csi.DeleteVolumeRequest) (*csi.DeleteVolumeResponse, error) {
	if req.VolumeId == "" {
		return nil, status.Error(codes.InvalidArgument, "volume_id is required")
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return &csi.DeleteVolumeResponse{}, d.remove(ctx, kindVolume, req.VolumeId)
}

func (d *driver) ValidateVolumeCapabilities(
	_ context.Context, req *csi.ValidateVolumeCapabilitiesRequest,
) (*csi.ValidateVolumeCapabilitiesResponse, error) {
	if req.VolumeId == "" || len(req.VolumeCapabilities) == 0 {
		return nil, status.Error(codes.InvalidArgument, "volume_id and volume_capabilities are required")
	}
	if err := d.mustHave(req.VolumeId); err != nil {
		return nil, err
	}
	if problem := unsupported(req.VolumeCapabilities); problem != "" {
		return &csi.ValidateVolumeCapabilitiesResponse{Message: problem}, nil
	}
	return &csi.ValidateVolumeCapabilitiesResponse{
		Confirmed: &csi.ValidateVolumeCapabilitiesResponse_Confirmed{
			VolumeCapabilities: req.VolumeCapabilities, VolumeContext: req.VolumeContext,
		},
	}, nil
}

// mustHave is an error where there is no such volume.
func (d *driver) mustHave(volume string) error {
	found, err := d.find(kindVolume, volume)
	if err == nil && found == nil {
		return status.Errorf(codes.NotFound, "there is no volume %q", volume)
	}
	return err
}

func (d *driver) CreateSnapshot(ctx context.Context, req *csi.CreateSnapshotRequest) (*csi.CreateSnapshotResponse, error) {
	if req.Name == "" || req.SourceVolumeId == "" {
		return nil, status.Error(codes.InvalidArgument, "name and source_volume_id are required")
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	snapshot, err := d.find(kindSnapshot, idOf(req.Name))
	if err != nil {
		return nil, err
	}
	if snapshot == nil {
		source, err := d.find(kindVolume, req.SourceVolumeId)
		switch {
		case err != nil:
			return nil, err
		case source == nil:
			return nil, status.Errorf(codes.NotFound, "there is no volume %q", req.SourceVolumeId)
		}
		snapshot = &record{ID: idOf(req.Name), Name: req.Name, Size: source.Size, Source: source.ID, Made: time.Now().UTC()}
		if err := d.make(ctx, kindSnapshot, *snapshot, d.path(kindVolume, source.ID)); err != nil {
			return nil, err
		}
	}
	if snapshot.Source != req.SourceVolumeId {
		return nil, status.Errorf(codes.AlreadyExists, "there is a snapshot %q of another volume", req.Name)
	}
	return &csi.CreateSnapshotResponse{Snapshot: &csi.Snapshot{
		SnapshotId: snapshot.ID, SourceVolumeId: snapshot.Source, SizeBytes: snapshot.Size, CreationTime: timestamppb.New(snapshot.Made),
		ReadyToUse: true,
	}}, nil
}

func (d *driver) DeleteSnapshot(ctx context.Context, req *csi.DeleteSnapshotRequest) (*csi.DeleteSnapshotResponse, error) {
	if req.SnapshotId == "" {
		return nil, status.Error(codes.InvalidArgument, "snapshot_id is required")
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return &csi.DeleteSnapshotResponse{}, d.remove(ctx, kindSnapshot, req.SnapshotId)
}

func (d *driver) NodeGetInfo(context.Context, *csi.NodeGetInfoRequest) (*csi.NodeGetInfoResponse, error) {
	return &csi.NodeGetInfoResponse{NodeId: d.node}, nil
}

func (d *driver) NodeGetCapabilities(context.Context, *csi.NodeGetCapabilitiesRequest) (*csi.NodeGetCapabilitiesResponse, error) {
	return &csi.NodeGetCapabilitiesResponse{}, nil
}

func (d *driver) NodePublishVolume(_ context.Context, req *csi.NodePublishVolumeRequest) (*csi.NodePublishVolumeResponse, error) {
	if req.VolumeId == "" || req.TargetPath == "" || req.VolumeCapability == nil {
		return nil, status.Error(codes.InvalidArgument, "volume_id, target_path and volume_capability are required")
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.mustHave(req.VolumeId); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(req.TargetPath, 0o750); err != nil {
		return nil, err
	}
	if mounted, err := isMounted(req.TargetPath); err != nil || mounted {
		return &csi.NodePublishVolumeResponse{}, err
	}
	if err := unix.Mount(d.path(kindVolume, req.VolumeId), req.TargetPath, "", unix.MS_BIND, ""); err != nil {
		return nil, err
	}
	if req.Readonly {
		if err := unix.Mount("", req.TargetPath, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
			return nil, errors.Join(err, unix.Unmount(req.TargetPath, 0))
		}
	}
	return &csi.NodePublishVolumeResponse{}, nil
}

// isMounted reports whether something is mounted at a folder. A subvolume is a device of its own.
func isMounted(path string) (bool, error) {
	var at, above unix.Stat_t
	if err := unix.Stat(path, &at); err != nil {
		return false, err
	}
	if err := unix.Stat(filepath.Dir(path), &above); err != nil {
		return false, err
	}
	return at.Dev != above.Dev, nil
}

func (d *driver) NodeUnpublishVolume(_ context.Context, req *csi.NodeUnpublishVolumeRequest) (*csi.NodeUnpublishVolumeResponse, error) {
	if req.VolumeId == "" || req.TargetPath == "" {
		return nil, status.Error(codes.InvalidArgument, "volume_id and target_path are required")
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := unix.Unmount(req.TargetPath, 0); err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOENT) {
		return nil, err
	}
	// What is not unmounted is not empty, and stays.
	if err := os.Remove(req.TargetPath); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	return &csi.NodeUnpublishVolumeResponse{}, nil
}
