package windowing

import (
	"encoding/binary"
	"hash/crc32"
	"os"
	"testing"

	"tidemark/reading"
)

// A body whose checksum was made to hold is an error or an engine that steps.
func FuzzRestore(f *testing.F) {
	for _, name := range []string{"testdata/snapshot.bin", "testdata/snapshot-2.bin", "testdata/snapshot-3.bin"} {
		b, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b[:len(b)-4])
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		if len(body) == 0 {
			return
		}
		b := append([]byte{1 + body[0]%snapshotVersion}, body[1:]...)
		e, err := Restore(binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli)))
		if err != nil {
			return
		}
		e.NextDeadline()
		e.Status()
		r := reading.Reading{
			Tag: reading.MakeTag(reading.Series{Input: "A", Asset: "m", Sensor: "s1"}), Value: reading.FloatValue(1), ID: "x",
			Stamp: reading.Stamp{Disposition: reading.Accept, EventNS: 1e6, WatermarkMS: 1},
		}
		for _, at := range []int64{1, 1 << 40} {
			e.Step(&reading.Batch{GatewayMS: at, Readings: []reading.Reading{r}, Emit: true})
			r.Stamp.EventNS, r.Stamp.WatermarkMS = 200e6, 200
		}
		if _, err := Restore(e.AppendSnapshot(nil)); err != nil {
			t.Fatal(err)
		}
	})
}
