package history_test

import (
	"context"
	"slices"

	"pgregory.net/rapid"

	"tidemark/buffer"
	"tidemark/history"
	"tidemark/reading"
	"tidemark/windowing"
)

// memory is a journal in memory, with the emissions that were committed.
type memory struct {
	info        history.Info
	blocks      []buffer.Block
	checkpoints map[uint64][]byte
	emitted     []windowing.Emission
	read        map[uint64]int // blocks whose data was read

	engine *windowing.Engine
	index  history.Indexer
}

const noon = 1_767_268_800_000 // 2026-01-01T12:00:00Z

func minutes(latenessMS int64) windowing.Config {
	return windowing.Config{FloorMS: reading.NoTime, LateIdentityMS: windowing.Forever, Features: []windowing.Feature{{
		ID: windowing.FeatureID{Name: "minute", Version: 1, Definition: 7}, SizeMS: 60_000, OutOfOrdernessMS: 2_000,
		AllowedLatenessMS: latenessMS, Functions: []string{"count", "sum"},
	}}}
}

func newMemory(t rapid.TB, c windowing.Config) *memory {
	t.Helper()
	e, err := windowing.New(windowing.Config{FloorMS: reading.NoTime})
	if err != nil {
		t.Fatal(err)
	}
	m := &memory{engine: e, checkpoints: map[uint64][]byte{}, read: map[uint64]int{}}
	m.info = history.Info{Gateway: "g", Generation: noon * 1000, First: 1, Next: 1, Config: windowing.AppendConfig(nil, &c)}
	m.commit(&reading.Batch{Config: m.info.Config}, noon)
	return m
}

// commit steps a batch and puts it into the journal, as of that wall time.
func (m *memory) commit(b *reading.Batch, atMS int64) {
	b.Seq, b.GatewayMS, b.WallNS, b.Emit = m.info.Next, atMS-noon, atMS*1e6, true
	out := m.engine.Step(b)
	for _, e := range out.Emissions { // which last until the next step
		e.Values = slices.Clone(e.Values)
		m.emitted = append(m.emitted, e)
	}
	blk := buffer.Block{Seq: b.Seq, MinMS: reading.NoTime, MaxMS: reading.NoTime, AtMS: atMS, Readings: len(b.Readings),
		Digest: out.Digest(), Index: m.index.Append(nil, b), Data: reading.AppendBatch(nil, b)}
	for i := range b.Readings {
		if ms := reading.FloorMS(b.Readings[i].Stamp.EventNS); b.Readings[i].Stamp.Disposition.Accepted() {
			if blk.MinMS == reading.NoTime {
				blk.MinMS = ms
			}
			blk.MinMS, blk.MaxMS = min(blk.MinMS, ms), max(blk.MaxMS, ms)
		}
	}
	m.blocks = append(m.blocks, blk)
	m.info.Next++
	m.info.Readings += int64(len(b.Readings))
	m.info.LatestMS = atMS
	m.info.OldestMS = m.blocks[0].AtMS
}

// forget drops the blocks below first, as retention does.
func (m *memory) forget(first uint64) {
	m.blocks = m.blocks[first-m.info.First:]
	m.info.First, m.info.OldestMS = first, m.blocks[0].AtMS
}

func (m *memory) Info(context.Context) (*history.Info, error) { i := m.info; return &i, nil }

func (m *memory) Headers(_ context.Context, from, to uint64, fn func(buffer.Block) error) error {
	for _, b := range m.blocks {
		if b.Data = nil; b.Seq >= from && b.Seq < to {
			if err := fn(b); err != nil {
				return err
			}
		}
	}
	return nil
}

func (m *memory) Blocks(ctx context.Context, from, to uint64, fn func(buffer.Block) error) error {
	for _, b := range m.blocks {
		if b.Seq >= from && b.Seq < to {
			m.read[b.Seq]++
			if err := fn(b); err != nil {
				return err
			}
		}
	}
	return nil
}

func (m *memory) Checkpoint(_ context.Context, before uint64) (snapshot []byte, seq uint64, err error) {
	for at, s := range m.checkpoints {
		if at < before && at >= seq {
			snapshot, seq = s, at
		}
	}
	return snapshot, seq, nil
}

// said is a reading of press/sensor at noon and so many milliseconds.
func said(sensor string, ms, arrivedMS int64, value int64) reading.Reading {
	return reading.Reading{
		Tag: reading.MakeTag(reading.Series{Input: "line", Asset: "press", Device: "d", Sensor: sensor}), Value: reading.IntValue(value),
		Source: reading.SourceTime{NS: (noon + ms) * 1e6, Zoned: true}, ServerNS: reading.NoTime, IngestNS: (noon + arrivedMS) * 1e6,
		Stamp: reading.Stamp{Disposition: reading.Accept, EventNS: (noon + ms) * 1e6, WatermarkMS: noon + ms},
	}
}

// day fills a journal with a reading a second of sensor a, and one every ten of b,
// for so many seconds.
func (m *memory) day(seconds int64) {
	for s := range seconds {
		b := &reading.Batch{Readings: []reading.Reading{said("a", s*1000, s*1000+200, s)}}
		if s%10 == 0 {
			b.Readings = append(b.Readings, said("b", s*1000, s*1000+200, 1))
		}
		m.commit(b, noon+s*1000+300)
	}
}
