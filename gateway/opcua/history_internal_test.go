package opcua

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/gopcua/opcua/ua"

	"tidemark/reading"
)

// archive is a server that keeps history: one value a second for each node, its
// second as the value.
type archive struct {
	page    int                      // values in an answer, whatever was asked for
	most    int                      // continuation points that it has room for; 0: no limit
	answers map[string]ua.StatusCode // by node: instead of values
	bounds  bool                     // values before and at the end that nobody asked for
	forget  int                      // how often a continuation point is forgotten
	takes   time.Duration            // to answer
	refuse  func(nodes int) error
	endless string // node whose last page comes again and again; "": none
	refused string // node that is refused with a continuation point

	open     map[string]int64 // continuation points: the next second
	calls    int
	released int
}

func (a *archive) call(ctx context.Context, req ua.Request) (ua.Response, error) {
	switch req := req.(type) {
	case *ua.ReadRequest:
		return noLimits(req), nil
	case *ua.HistoryReadRequest:
		return a.history(req)
	}
	return nil, fmt.Errorf("unexpected %T", req)
}

// noLimits answers as a server without operation limits.
func noLimits(req *ua.ReadRequest) *ua.ReadResponse {
	resp := &ua.ReadResponse{}
	for range req.NodesToRead {
		resp.Results = append(resp.Results, &ua.DataValue{EncodingMask: ua.DataValueStatusCode, Status: ua.StatusBadNodeIDUnknown})
	}
	return resp
}

func (a *archive) history(req *ua.HistoryReadRequest) (ua.Response, error) {
	a.calls++
	time.Sleep(a.takes)
	if req.ReleaseContinuationPoints {
		a.released += len(req.NodesToRead)
		for _, n := range req.NodesToRead {
			delete(a.open, string(n.ContinuationPoint))
		}
		return &ua.HistoryReadResponse{}, nil
	}
	if a.refuse != nil {
		if err := a.refuse(len(req.NodesToRead)); err != nil {
			return nil, err
		}
	}
	details := req.HistoryReadDetails.Value.(*ua.ReadRawModifiedDetails)
	resp := &ua.HistoryReadResponse{}
	for _, n := range req.NodesToRead {
		resp.Results = append(resp.Results, a.node(n, details))
	}
	return resp, nil
}

func (a *archive) node(n *ua.HistoryReadValueID, d *ua.ReadRawModifiedDetails) *ua.HistoryReadResult {
	if a.refused == n.NodeID.String() {
		return &ua.HistoryReadResult{StatusCode: ua.StatusBadUserAccessDenied, ContinuationPoint: []byte("more")}
	}
	if code, ok := a.answers[n.NodeID.String()]; ok {
		return &ua.HistoryReadResult{StatusCode: code}
	}
	next := d.StartTime.Unix()
	if point := string(n.ContinuationPoint); point != "" {
		at, ok := a.open[point]
		delete(a.open, point)
		if !ok || a.forget > 0 {
			a.forget--
			return &ua.HistoryReadResult{StatusCode: ua.StatusBadContinuationPointInvalid}
		}
		next = at
	}
	data := &ua.HistoryData{}
	if a.bounds {
		data.DataValues = append(data.DataValues, archived(d.StartTime.Unix()-1), archived(d.EndTime.Unix()))
	}
	for ; len(data.DataValues) < a.page && next < d.EndTime.Unix(); next++ {
		data.DataValues = append(data.DataValues, archived(next))
	}
	r := &ua.HistoryReadResult{HistoryData: ua.NewExtensionObject(data)}
	if a.endless == n.NodeID.String() && next >= d.EndTime.Unix() {
		next = d.EndTime.Unix() - 1
	}
	if next < d.EndTime.Unix() {
		if a.most > 0 && len(a.open) == a.most {
			return &ua.HistoryReadResult{StatusCode: ua.StatusBadNoContinuationPoints}
		}
		point := fmt.Sprintf("%s at %d", n.NodeID, next)
		if a.open == nil {
			a.open = map[string]int64{}
		}
		a.open[point] = next
		r.ContinuationPoint = []byte(point)
	}
	return r
}

// archived is the value of one second, as servers mark what comes out of an archive.
func archived(second int64) *ua.DataValue {
	return &ua.DataValue{
		EncodingMask: ua.DataValueValue | ua.DataValueStatusCode | ua.DataValueSourceTimestamp,
		Value:        ua.MustVariant(second), Status: 0x400, SourceTimestamp: time.Unix(second, 0),
	}
}

// kept are n items with a history.
func kept(n int) []item {
	items := make([]item, n)
	for i := range items {
		items[i] = item{
			node: ua.NewNumericNodeID(1, uint32(i)), place: fmt.Sprintf("nsu=u;i=%d", i), history: true,
			series: reading.Series{Input: "in", Sensor: fmt.Sprint(i)},
		}
	}
	return items
}

// fetched runs the backfill over ten minutes of 1970 and returns the seconds that
// came, by sensor.
func (a *archive) fetched(t *testing.T, items []item) (map[string][]int64, []shortfall, error) {
	t.Helper()
	got := map[string][]int64{}
	start := time.Now()
	now := func() reading.Instant {
		return reading.Instant{WallNS: arrival.WallNS, BootNS: int64(time.Since(start))}
	}
	short, err := fetchHistory(t.Context(), a, items, 100e9, 700e9, now, func(_ context.Context, p reading.Parcel) error {
		for _, r := range p.Readings {
			sec, _ := r.Value.Int()
			if r.Delivery != reading.Historical || r.Source.NS != sec*1e9 || r.Quality != (reading.Quality{}) || r.IngestNS != arrival.WallNS {
				t.Errorf("%+v", r)
			}
			s := r.Tag.Value().Sensor
			got[s] = append(got[s], sec)
		}
		return nil
	})
	return got, short, err
}

func span(from, to int64) (all []int64) {
	for ; from < to; from++ {
		all = append(all, from)
	}
	return all
}

func TestHistoryIsReadToItsEnd(t *testing.T) {
	for name, a := range map[string]*archive{
		"one page":                              {page: 1000},
		"many pages":                            {page: 7},
		"bounds that nobody asked for":          {page: 1000, bounds: true},
		"few continuation points":               {page: 100, most: 3},
		"one continuation point":                {page: 100, most: 1},
		"continuation points forgotten":         {page: 100, forget: 2},
		"too many at once":                      {page: 100, refuse: fewerThan(4, ua.StatusBadTooManyOperations)},
		"an answer too large":                   {page: 100, refuse: fewerThan(2, ua.StatusBadResponseTooLarge)},
		"an answer too large for the wire once": {page: 100, refuse: fewerThan(3, fmt.Errorf("answer: %w", ua.StatusBadEncodingLimitsExceeded))},
	} {
		got, short, err := a.fetched(t, kept(9))
		if err != nil || len(short) > 0 {
			t.Errorf("%s: %v, %+v", name, err, short)
		}
		for sensor, seconds := range got {
			// What came before a restart may come again: it has an identity.
			if d := cmp.Diff(span(100, 700), slices.Compact(seconds)); d != "" {
				t.Errorf("%s: sensor %s: %s", name, sensor, d)
			}
		}
		if len(got) != 9 {
			t.Errorf("%s: %d of 9 sensors", name, len(got))
		}
	}
}

// A server that always has one more page holds nobody up: its node is told, the others
// are filled, and the continuation point is given back.
func TestEndlessHistory(t *testing.T) {
	a := &archive{page: 50, most: 3, endless: "ns=1;i=0"}
	got, short, err := a.fetched(t, kept(4))
	if err != nil || len(short) != 1 || short[0].reason != "history_endless" || !slices.Equal(short[0].places, []string{"nsu=u;i=0"}) {
		t.Errorf("%v, %+v", err, short)
	}
	if short[0].fromNS != 699e9 || short[0].toNS != 700e9 {
		t.Errorf("missing from %d to %d, want what was not reached", short[0].fromNS, short[0].toNS)
	}
	for i := range 4 {
		if d := cmp.Diff(span(100, 700), slices.Compact(got[fmt.Sprint(i)])); d != "" {
			t.Errorf("sensor %d: %s", i, d)
		}
	}
	if a.released == 0 || len(a.open) > 0 {
		t.Errorf("%d continuation points given back, %d left open", a.released, len(a.open))
	}
}

// A status that is bad ends a node's history, whatever continuation point comes with it.
func TestRefusedHistoryWithAContinuationPoint(t *testing.T) {
	calls := 0
	_, short, err := (&archive{page: 50, refuse: func(int) error { calls++; return nil }, refused: "ns=1;i=0"}).fetched(t, kept(1))
	if err != nil || len(short) != 1 || calls != 1 {
		t.Errorf("%d calls, %v, %+v", calls, err, short)
	}
}

func fewerThan(n int, err error) func(int) error {
	return func(nodes int) error {
		if nodes >= n {
			return err
		}
		return nil
	}
}

func TestWhatHistoryCannotFillIsSaid(t *testing.T) {
	items := kept(6)
	items[5].history = false
	a := &archive{page: 100, answers: map[string]ua.StatusCode{
		"ns=1;i=1": ua.StatusBadHistoryOperationUnsupported, "ns=1;i=2": ua.StatusBadHistoryOperationUnsupported,
		"ns=1;i=3": ua.StatusBadNoData, "ns=1;i=4": ua.StatusGoodNoData,
	}}
	got, short, err := a.fetched(t, items)
	if err != nil || len(got) != 1 || len(got["0"]) != 600 {
		t.Errorf("%v: %d sensors", err, len(got))
	}
	want := []shortfall{
		{reason: "no_history", fromNS: 100e9, toNS: 700e9, places: []string{"nsu=u;i=5"}},
		{reason: "history_refused", fromNS: 100e9, toNS: 700e9, places: []string{"nsu=u;i=1", "nsu=u;i=2"}},
	}
	for i := range short {
		short[i].detail = ""
	}
	if d := cmp.Diff(want, short, cmp.AllowUnexported(shortfall{})); d != "" {
		t.Error(d)
	}
}

// A continuation point that is forgotten again and again ends in a shortfall from
// where it stopped.
func TestForgetfulServerEndsInAShortfall(t *testing.T) {
	a := &archive{page: 100, forget: 1000}
	got, short, err := a.fetched(t, kept(1))
	if err != nil || len(short) != 1 || short[0].fromNS <= 100e9 || len(got["0"]) == 0 {
		t.Errorf("%v %+v, %d values", err, short, len(got["0"]))
	}
}

// An archive that starts behind its server is waited for, and no longer than a minute.
func TestHistoryIsWaitedFor(t *testing.T) {
	const never = 1000
	for name, code := range map[string]ua.StatusCode{"busy": ua.StatusBadResourceUnavailable, "starting": ua.StatusBadDataUnavailable, "one by one": ua.StatusBadTooManyOperations} {
		for ready, want := range map[int]int{5: 600, never: 0} { // calls before the archive is there
			synctest.Test(t, func(t *testing.T) {
				service := &archive{page: 100}
				service.refuse = func(int) error {
					if service.calls <= ready {
						return code
					}
					return nil
				}
				node := &archive{page: 100, answers: map[string]ua.StatusCode{"ns=1;i=0": code}}
				node.refuse = func(int) error {
					if node.calls > ready {
						node.answers = nil
					}
					return nil
				}
				for level, a := range map[string]*archive{"service": service, "node": node} {
					begin := time.Now()
					got, short, err := a.fetched(t, kept(1))
					if len(got["0"]) != want || (want == 0) != (err != nil || len(short) == 1) {
						t.Errorf("%s, %s, there after %d calls: %d values, %v %+v", name, level, ready, len(got["0"]), err, short)
					}
					if took := time.Since(begin); took > 64*time.Second {
						t.Errorf("%s, %s: took %v", name, level, took)
					}
				}
			})
		}
	}
}

func TestLostConnectionEndsTheBackfill(t *testing.T) {
	gone := errors.New("connection reset")
	a := &archive{page: 10}
	a.refuse = func(int) error {
		if a.calls > 5 {
			return gone
		}
		return nil
	}
	if _, _, err := a.fetched(t, kept(3)); !errors.Is(err, gone) {
		t.Errorf("got %v", err)
	}
	if a.released != 3 {
		t.Errorf("%d continuation points released, want 3", a.released)
	}
}

// The server has half of its time for itself.
func TestHistoryIsReadGently(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &archive{page: 100, takes: 100 * time.Millisecond}
		start := time.Now()
		if _, _, err := a.fetched(t, kept(3)); err != nil {
			t.Fatal(err)
		}
		if took, want := time.Since(start), time.Duration(a.calls)*200*time.Millisecond; took != want {
			t.Errorf("%d calls took %v, want %v", a.calls, took, want)
		}
	})
}
