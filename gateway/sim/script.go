package sim

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"strconv"
	"time"
)

// Machine is a device of the story and the one sensor that it publishes, as a
// field of that name, to line/{asset}/{device}/telemetry.
type Machine struct {
	Asset, Device, Sensor string
	Habit                 string // what is special about it, in two or three words for people

	every       time.Duration // between two readings
	level, span float64       // the values swing around level by about span
	habit       habit
}

// Topic is where the machine publishes.
func (m *Machine) Topic() string { return "line/" + m.Asset + "/" + m.Device + "/telemetry" }

// habit turns reading n into what is sent of it, and when.
type habit func(m *Machine, n int, r message, dice *rand.Rand) []message

// message is one publish. Durations count from the beginning of the story.
type message struct {
	send  time.Duration // when it goes out
	taken time.Duration // when the reading was taken
	n     int           // of the reading, which is its identity
	value float64

	skew    time.Duration // error of the machine's clock
	seconds bool          // stamped in seconds where milliseconds are agreed
	note    string        // what happens here, for people; mostly empty
	silent  bool          // only a note, nothing is sent
}

// Times of the story; see the package's documentation for what they are made to
// fit.
const (
	jitterMax  = 1500 * time.Millisecond // below the out-of-orderness
	detour     = 8500 * time.Millisecond // beyond it, within the allowed lateness
	longDetour = 25 * time.Second        // beyond the allowed lateness
	fastClock  = 90 * time.Second
	awake      = 14 // readings between two silences
	asleep     = 12 // readings taken in silence, and sent in one go
)

// Cast returns the machines of the story.
func Cast() []Machine {
	const (
		second      = time.Second
		temperature = "temperature" // Cel
		vibration   = "vibration"   // mm/s
	)
	return []Machine{
		{Asset: "mixer-1", Device: "m1", Sensor: temperature, Habit: "steady", every: second, level: 64, span: 3, habit: steady},
		{Asset: "pump-2", Device: "p2", Sensor: vibration, Habit: "out of order", every: second, level: 4.2, span: 0.6, habit: jittery},
		{Asset: "oven-3", Device: "o3", Sensor: temperature, Habit: "late, or far too late", every: second, level: 170, span: 12, habit: late},
		{Asset: "saw-4", Device: "s4", Sensor: vibration, Habit: "repeats itself", every: second, level: 12.5, span: 1.5, habit: repeating},
		{Asset: "press-5", Device: "x5", Sensor: vibration, Habit: "clock 90 s fast", every: 4 * second, level: 7.8, span: 1.1, habit: future},
		{Asset: "tank-6", Device: "t6", Sensor: temperature, Habit: "silent, then backlog", every: second, level: 35, span: 8, habit: absent},
		{Asset: "fan-7", Device: "f7", Sensor: vibration, Habit: "stamps s, not ms", every: second, level: 2.9, span: 0.4, habit: wrongUnit},
	}
}

// tick returns what becomes of reading n.
func (m *Machine) tick(n int, dice *rand.Rand) []message {
	taken := time.Duration(n) * m.every
	swing := math.Sin(2*math.Pi*taken.Seconds()/45) + 0.3*dice.NormFloat64()
	value := math.Round((m.level+m.span*swing)*100) / 100
	return m.habit(m, n, message{send: taken, taken: taken, n: n, value: value}, dice)
}

func steady(_ *Machine, _ int, r message, _ *rand.Rand) []message { return []message{r} }

func jittery(_ *Machine, _ int, r message, dice *rand.Rand) []message {
	r.send += time.Duration(dice.Int64N(int64(jitterMax)))
	return []message{r}
}

// late sends every fifth reading on a detour, so that each window is corrected,
// and one in ten on a way so long that its window is closed on arrival.
func late(_ *Machine, n int, r message, _ *rand.Rand) []message {
	switch {
	case n%10 == 7:
		r.send += longDetour
		r.note = "brings a reading 25 s late"
	case n%5 == 0:
		r.send += detour
	}
	return []message{r}
}

func repeating(_ *Machine, n int, r message, _ *rand.Rand) []message {
	if n%3 != 0 {
		return []message{r}
	}
	again := r
	again.send += 2 * time.Second
	return []message{r, again}
}

func future(_ *Machine, _ int, r message, _ *rand.Rand) []message {
	r.skew = fastClock
	return []message{r}
}

// absent goes on measuring while it is away; its backlog comes in order.
func absent(_ *Machine, n int, r message, _ *rand.Rand) []message {
	switch at := n % (awake + asleep); {
	case at == 0 && n > 0:
		r.note = "is back, with a backlog of " + strconv.Itoa(asleep) + " readings"
	case at == awake:
		quiet := r
		quiet.silent, quiet.note = true, "goes silent"
		r.send += time.Duration(asleep) * time.Second
		return []message{quiet, r}
	case at > awake:
		r.send += time.Duration(awake+asleep-at) * time.Second
	}
	return []message{r}
}

func wrongUnit(_ *Machine, n int, r message, _ *rand.Rand) []message {
	if n%10 == 6 {
		r.seconds = true
	}
	return []message{r}
}

// payload is the message as it goes out, if the story began at start.
func (m *Machine) payload(r message, start time.Time) []byte {
	ts := start.Add(r.taken + r.skew).UnixMilli()
	if r.seconds {
		ts /= 1000
	}
	data, err := json.Marshal(map[string]any{
		"ts": ts, "id": m.Device + "-" + strconv.Itoa(r.n), "quality": "good", m.Sensor: r.value,
	})
	if err != nil {
		panic(err) // finite numbers and plain strings always marshal
	}
	return data
}
