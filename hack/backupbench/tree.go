package main

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"
)

// A tree is the same on every machine: names, sizes and contents follow from the number of a file and from how often it was
// changed. Half of the content is text, which compresses, the other half is noise, which does not.

// shape is a tree of files.
type shape struct {
	Name  string
	Files int
	// Size is that of each file; 0 stands for sizes between 128 bytes and 32 KiB, most of them small.
	Size int64
	// Piece is how much of a large file changes at a place: whole blocks.
	Piece int64
}

func small(files int) shape { return shape{Name: "small", Files: files} }

func large(files int, size int64) shape {
	return shape{Name: "large", Files: files, Size: size, Piece: 1 << 20}
}

func (s shape) String() string {
	if s.Size == 0 {
		return fmt.Sprintf("%s small files", thousands(s.Files))
	}
	if s.Size%(1<<30) == 0 {
		return fmt.Sprintf("%d x %d GiB", s.Files, s.Size>>30)
	}
	return fmt.Sprintf("%d x %d MiB", s.Files, s.Size>>20)
}

func thousands(n int) string {
	if n < 1000 {
		return strconv.Itoa(n)
	}
	return fmt.Sprintf("%s,%03d", thousands(n/1000), n%1000)
}

// path is where a file is in the tree: 100 in a folder, 100 folders in a folder.
func (s shape) path(number int) string {
	return filepath.Join(fmt.Sprintf("%03d", number/10_000), fmt.Sprintf("%02d", number/100%100), fmt.Sprintf("file-%02d.dat", number%100))
}

const smallest, biggest = 128, 32 << 10

// size is that of a file. Logarithms of the sizes of small files are spread evenly.
func (s shape) size(number int) int64 {
	if s.Size > 0 {
		return s.Size
	}
	return int64(smallest * math.Pow(biggest/smallest, random("size", number, 0).Float64()))
}

func (s shape) bytes() int64 {
	var sum int64
	for number := range s.Files {
		sum += s.size(number)
	}
	return sum
}

// random returns numbers that follow from what they are for.
func random(purpose string, number, generation int) *rand.Rand {
	hash := fnv.New64a()
	fmt.Fprintf(hash, "%s/%d/%d", purpose, number, generation)
	return rand.New(rand.NewPCG(hash.Sum64(), 1))
}

// block is how much of a file is of one kind. Each is text in its first half, and noise in the second.
const block = 16 << 10

// filler writes the blocks of a file.
type filler struct {
	noise *rand.ChaCha8
	words *rand.Rand
	text  [][]byte
	block [block]byte
}

func newFiller() *filler {
	c := &filler{}
	letters := random("words", 0, 0)
	for range 2000 {
		word := make([]byte, 2+letters.IntN(9))
		for i := range word {
			word[i] = "etaoinshrdlucmfwypvbgk"[min(letters.IntN(22), letters.IntN(22))]
		}
		c.text = append(c.text, append(word, ' '))
	}
	return c
}

// next returns a block of a file, as it is after so many changes.
func (c *filler) next(number int, index int64, generation int) []byte {
	var seed [32]byte
	for i, value := range []uint64{uint64(number), uint64(index), uint64(generation)} {
		binary.LittleEndian.PutUint64(seed[8*i:], value)
	}
	c.noise = rand.NewChaCha8(seed)
	c.words = rand.New(c.noise)
	text := c.block[:0]
	for len(text) < block/2 {
		at := c.words.Uint32()
		text = append(text, c.text[(at&0xffff)*(at>>16)>>16*2000>>16]...)
	}
	_, _ = c.noise.Read(c.block[block/2:])
	return c.block[:]
}

// write writes a file of the tree.
func (c *filler) write(file string, number int, size int64, generation int) error {
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	// A small file has a block that is cut: text and noise in halves too.
	if size < block {
		whole := c.next(number, 0, generation)
		_, err = f.Write(whole[block/2-size/2 : block/2-size/2+size])
		return errors.Join(err, f.Close())
	}
	for index := int64(0); index*block < size && err == nil; index++ {
		_, err = f.Write(c.next(number, index, generation)[:min(block, size-index*block)])
	}
	return errors.Join(err, f.Close())
}

// change changes a file so that 1 % of the tree is another: of many files one in a hundred is written anew, of few files a hundredth of
// each, in pieces. It is always the same files and pieces.
func (c *filler) change(file string, number int, s shape, generation int) error {
	if s.Size == 0 {
		if random("changes", number/100, 0).IntN(100) != number%100 {
			return nil
		}
		return c.write(file, number, s.size(number), generation)
	}
	f, err := os.OpenFile(file, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	piece := s.Piece
	for at := int64(0); at < s.Size && err == nil; at += 100 * piece {
		start := at + random("changes", number, int(at/piece)).Int64N(max(1, min(100*piece, s.Size-at)/piece))*piece
		for index := start / block; index*block < min(start+piece, s.Size) && err == nil; index++ {
			_, err = f.WriteAt(c.next(number, index, generation)[:min(block, s.Size-index*block)], index*block)
		}
	}
	return errors.Join(err, f.Close())
}

// state is what is known of a tree that stands.
type state struct {
	Shape shape
	// Made is when all of it was there.
	Made time.Time
	// Generation is how often it was changed.
	Generation int
}

func (b *bench) tree(s shape) string { return filepath.Join(b.dir, "tree-"+s.Name) }

func (b *bench) stateFile(s shape) string { return b.tree(s) + ".json" }

func (b *bench) state(s shape) (state, error) {
	var found state
	raw, err := os.ReadFile(b.stateFile(s))
	if err != nil {
		return found, err
	}
	return found, json.Unmarshal(raw, &found)
}

func (b *bench) setState(s state) error {
	raw, err := json.Marshal(s)
	if err != nil {
		return err
	}
	return os.WriteFile(b.stateFile(s.Shape), raw, 0o644)
}

// makeTrees makes the trees that do not stand yet.
func (b *bench) makeTrees(ctx context.Context) error {
	for _, s := range b.shapes {
		if found, err := b.state(s); err == nil && found.Shape == s {
			continue
		}
		b.say("making %s, %d MB", s, s.bytes()/1e6)
		if err := b.removeTree(s); err != nil {
			return err
		}
		if err := everyFile(ctx, s, func(c *filler, number int) error {
			file := filepath.Join(b.tree(s), s.path(number))
			if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
				return err
			}
			return c.write(file, number, s.size(number), 0)
		}); err != nil {
			return err
		}
		if err := b.setState(state{Shape: s, Made: time.Now()}); err != nil {
			return err
		}
	}
	return nil
}

// changeTree changes 1 % of a tree.
func (b *bench) changeTree(ctx context.Context, s shape) error {
	now, err := b.state(s)
	if err != nil {
		return err
	}
	now.Generation++
	if err := everyFile(ctx, s, func(c *filler, number int) error {
		return c.change(filepath.Join(b.tree(s), s.path(number)), number, s, now.Generation)
	}); err != nil {
		return err
	}
	return b.setState(now)
}

// everyFile calls do for every file, on all processors.
func everyFile(ctx context.Context, s shape, do func(c *filler, number int) error) error {
	group, ctx := errgroup.WithContext(ctx)
	workers := runtime.NumCPU()
	for worker := range workers {
		group.Go(func() error {
			c := newFiller()
			for number := worker; number < s.Files; number += workers {
				if err := ctx.Err(); err != nil {
					return err
				}
				if err := do(c, number); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return group.Wait()
}

func (b *bench) removeTree(s shape) error {
	return errors.Join(os.RemoveAll(b.stateFile(s)), os.RemoveAll(b.tree(s)))
}

func (b *bench) removeTrees() error {
	var failed []error
	for _, s := range b.shapes {
		failed = append(failed, b.removeTree(s))
	}
	return errors.Join(failed...)
}

// readTree reads all files, so that the system has them in memory as far as they fit.
func readTree(folder string) error {
	buffer := make([]byte, 1<<20)
	return eachFile(folder, func(file string, _ fs.FileInfo) error {
		f, err := os.Open(file)
		if err != nil {
			return err
		}
		_, err = io.CopyBuffer(struct{ io.Writer }{io.Discard}, struct{ io.Reader }{f}, buffer)
		return errors.Join(err, f.Close())
	})
}

// sizeOf is how many bytes the files of a folder hold.
func sizeOf(folder string) (int64, error) {
	var sum int64
	err := eachFile(folder, func(_ string, info fs.FileInfo) error {
		sum += info.Size()
		return nil
	})
	return sum, err
}

func eachFile(folder string, do func(file string, info fs.FileInfo) error) error {
	return filepath.WalkDir(folder, func(file string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		return do(file, info)
	})
}
