package inspect

import (
	"bytes"
	"debug/buildinfo"
	"debug/elf"
	"debug/macho"
	"debug/pe"
	"fmt"
)

// checkProgram checks that a program runs on that system, and was built so that it says
// nothing about the machine that built it.
func checkProgram(content []byte, system, architecture string) error {
	reader := bytes.NewReader(content)
	got := "unknown"
	if file, err := elf.NewFile(reader); err == nil {
		got = "linux/" + map[elf.Machine]string{elf.EM_X86_64: "amd64", elf.EM_AARCH64: "arm64"}[file.Machine]
	} else if file, err := macho.NewFile(reader); err == nil {
		got = "darwin/" + map[macho.Cpu]string{macho.CpuAmd64: "amd64", macho.CpuArm64: "arm64"}[file.Cpu]
	} else if file, err := pe.NewFile(reader); err == nil {
		got = "windows/" + map[uint16]string{pe.IMAGE_FILE_MACHINE_AMD64: "amd64", pe.IMAGE_FILE_MACHINE_ARM64: "arm64"}[file.Machine]
	}
	if want := system + "/" + architecture; got != want {
		return fmt.Errorf("the program is for %s, not for %s", got, want)
	}
	info, err := buildinfo.Read(reader)
	if err != nil {
		return err
	}
	settings := map[string]string{}
	for _, setting := range info.Settings {
		settings[setting.Key] = setting.Value
	}
	for key, want := range map[string]string{"GOOS": system, "GOARCH": architecture, "CGO_ENABLED": "0", "-trimpath": "true", "vcs": ""} {
		if settings[key] != want {
			return fmt.Errorf("the program was built with %s=%q, want %q", key, settings[key], want)
		}
	}
	return nil
}
