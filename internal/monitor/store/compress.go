package store

import (
	"hash/crc32"

	"github.com/klauspost/compress/zstd"
)

const (
	// maxBlob is the most bytes that a body, a payload or the like may have before it is compressed. The API server takes objects
	// of up to 3 MiB. The bound is for reading, too: a damaged blob cannot ask for more memory.
	maxBlob = 16 << 20
	// dictionarySize is how many bytes of recent payloads make a dictionary, and dictionaryAge after how many bytes of payloads a
	// newer one is made. Payloads resemble each other so much that this makes them four times smaller than without.
	dictionarySize = 32 << 10
	dictionaryAge  = 4 << 20
	// maxDictionaries is how many dictionaries a file may have.
	maxDictionaries = 64
	// minDictionary is the least that a dictionary has: the format needs eight bytes.
	minDictionary = 8
)

// dictionary compresses with content that both sides know. Its number names it in what is compressed, and follows from its
// content, so it is the same in every file that has it.
type dictionary struct {
	id      uint32
	content []byte
	encoder *zstd.Encoder
}

// newDictionary returns how to compress with a content. An empty content is none.
func newDictionary(content []byte) (*dictionary, error) {
	options := []zstd.EOption{zstd.WithEncoderConcurrency(2), zstd.WithLowerEncoderMem(true), zstd.WithEncoderLevel(zstd.SpeedFastest)}
	d := &dictionary{content: content}
	if len(content) > 0 {
		d.id = dictionaryID(content)
		options = append(options, zstd.WithEncoderDictRaw(d.id, content))
	}
	encoder, err := zstd.NewWriter(nil, options...)
	if err != nil {
		return nil, err
	}
	d.encoder = encoder
	return d, nil
}

func dictionaryID(content []byte) uint32 {
	// Small numbers are reserved by the format.
	return crc32.ChecksumIEEE(content) | 1<<16
}

// compress returns data so that decompress gives it back. A checksum is in it.
func (d *dictionary) compress(data []byte) []byte {
	return d.encoder.EncodeAll(data, make([]byte, 0, len(data)/2+32))
}

// newDecoder returns how to read what any of the dictionaries compressed.
func newDecoder(dictionaries map[uint32][]byte) (*zstd.Decoder, error) {
	options := []zstd.DOption{zstd.WithDecoderConcurrency(2), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxMemory(maxBlob)}
	for id, content := range dictionaries {
		options = append(options, zstd.WithDecoderDictRaw(id, content))
	}
	return zstd.NewReader(nil, options...)
}

// decompress returns what was compressed, or errDamaged.
func decompress(decoder *zstd.Decoder, data []byte) ([]byte, error) {
	out, err := decoder.DecodeAll(data, nil)
	if err != nil {
		return nil, errDamaged
	}
	return out, nil
}

// samples gathers recent payloads for the next dictionary. It holds at most two times dictionarySize bytes.
type samples struct {
	recent []byte
	seen   int
}

func (s *samples) add(payload []byte) {
	s.seen += len(payload)
	if len(payload) > dictionarySize/4 {
		return // one large value would push out everything that repeats
	}
	s.recent = append(s.recent, payload...)
	if len(s.recent) > 2*dictionarySize {
		s.recent = append([]byte(nil), s.recent[len(s.recent)-dictionarySize:]...)
	}
}

// due reports whether a dictionary should be made: the first as soon as there is enough for one.
func (s *samples) due(have bool) bool {
	if len(s.recent) < dictionarySize {
		return false
	}
	return !have || s.seen >= dictionaryAge
}

func (s *samples) take() []byte {
	s.seen = 0
	return append([]byte(nil), s.recent[len(s.recent)-dictionarySize:]...)
}
