package mqtt

import (
	"encoding/csv"
	"errors"
	"io"
	"strconv"
	"strings"
)

// csvFormat reads lines with columns (RFC 4180): those that are declared, or else
// those that the first line of each payload names.
type csvFormat struct {
	sub     *subscription
	comma   rune
	columns []string
	values  []pair
}

func newCSVFormat(s *subscription) *csvFormat {
	f := &csvFormat{sub: s, comma: ',', columns: s.Columns}
	if s.Separator != 0 {
		f.comma = s.Separator
	}
	return f
}

func (f *csvFormat) read(d *Decoder) {
	text := d.raw
	r := csv.NewReader(strings.NewReader(text))
	r.Comma, r.FieldsPerRecord, r.ReuseRecord, r.TrimLeadingSpace = f.comma, -1, true, true
	columns := f.columns
	several := strings.IndexByte(strings.TrimRight(text, "\r\n"), '\n') >= 0
	for i := 0; ; {
		from := r.InputOffset()
		record, err := r.Read()
		if errors.Is(err, io.EOF) {
			return
		}
		d.breathe()
		d.raw = strings.TrimRight(text[from:r.InputOffset()], "\r\n")
		switch {
		case err != nil:
			d.malformed("not_csv", "the line is no CSV: "+err.Error())
			continue
		case columns == nil:
			columns = append([]string{}, record...)
			continue
		case len(record) != len(columns):
			d.malformed("columns_differ", "the line has "+strconv.Itoa(len(record))+" columns and "+strconv.Itoa(len(columns))+
				" are declared: a column more or less would give values to the wrong sensors; mend csv.columns")
			continue
		}
		index := -1
		if several {
			index = i
		}
		i++
		f.line(d, columns, record, index)
	}
}

func (f *csvFormat) line(d *Decoder, columns, record []string, index int) {
	slots := d.clear()
	f.values = f.values[:0]
	for i, text := range record {
		v := scalar(strings.TrimSpace(text))
		if !f.sub.plan.putNamed(columns[i], v, slots) && v.kind != null && columns[i] != "" {
			f.values = append(f.values, pair{columns[i], v})
		}
	}
	d.flat(index, f.values)
}
