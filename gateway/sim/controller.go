package sim

import (
	"context"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/gopcua/opcua/id"
	"github.com/gopcua/opcua/ua"
)

// ControllerURI is the namespace of a controller's nodes.
const ControllerURI = "urn:tidemark:demo:controller"

// Controller is a machine's controller with an OPC UA server in it, on a loopback
// port, without security: a kiln whose temperature and power change once a
// second and whose setpoint never does.
type Controller struct {
	now func() time.Time
	srv *opcuaServer
	// changing are the variables whose value follows from the second.
	changing []*opcuaNode
}

// Kiln is what the controller controls, as the browse path of its temperature
// has it: Objects/Kilns/{asset}/{sensor}.
func Kiln() Machine {
	return Machine{Asset: "kiln-8", Sensor: "temperature", Habit: "speaks OPC UA"}
}

// NewController binds a loopback port. Clients are served once Run is called.
func NewController(now func() time.Time) (*Controller, error) {
	srv, err := newOPCUAServer(ControllerURI, now)
	if err != nil {
		return nil, fmt.Errorf("cannot bind a port for the controller: %w", err)
	}
	c := &Controller{now: now, srv: srv}
	kilns := c.object(srv.objects(), "Kilns", id.Organizes)
	kiln := c.object(kilns, Kiln().Asset, id.Organizes)
	const celsius, kilowatt = 4408652, 4937556 // CEL and KWT of UNECE Recommendation 20
	c.variable(kiln, "temperature", celsius, func(sec float64) float64 { return 850 + 12*math.Sin(sec/9) })
	c.variable(kiln, "power", kilowatt, func(sec float64) float64 { return 40 + 6*math.Cos(sec/9) })
	c.variable(kiln, "setpoint", celsius, nil)
	return c, nil
}

// URL is the server's endpoint.
func (c *Controller) URL() string { return c.srv.URL() }

// close frees the port of a controller that never ran.
func (c *Controller) close() { c.srv.Close() }

// Run serves until ctx ends; the values change until hushed is closed.
func (c *Controller) Run(ctx context.Context, hushed <-chan struct{}) error {
	var serving sync.WaitGroup
	serving.Go(func() { c.srv.Run(ctx) })
	defer serving.Wait()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	changing := c.changing
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-hushed:
			changing, hushed = nil, nil
		case <-tick.C:
			c.srv.changed(changing)
		}
	}
}

func (c *Controller) object(parent *opcuaNode, name string, reference uint32) *opcuaNode {
	return c.srv.add(parent, ua.NewStringNodeID(2, name), name, ua.NodeClassObject, reference)
}

// variable makes a variable of the kiln whose value follows from the second;
// without value it is a setpoint, which stays as it was when the kiln was switched
// on.
func (c *Controller) variable(kiln *opcuaNode, name string, unitID int32, value func(sec float64) float64) {
	switchedOn := c.now()
	key := Kiln().Asset + "." + name
	n := c.srv.variable(kiln, ua.NewStringNodeID(2, key), name, id.HasComponent, id.Double, func() *ua.DataValue {
		at, v := switchedOn, 850.0
		if value != nil {
			at = c.now().Truncate(time.Second)
			v = math.Round(10*value(float64(at.Unix()%1e6))) / 10
		}
		return &ua.DataValue{
			EncodingMask: ua.DataValueValue | ua.DataValueSourceTimestamp | ua.DataValueServerTimestamp,
			Value:        ua.MustVariant(v), SourceTimestamp: at, ServerTimestamp: c.now(),
		}
	})
	unit := ua.MustVariant(ua.NewExtensionObject(&ua.EUInformation{
		NamespaceURI: "http://www.opcfoundation.org/UA/units/un/cefact", UnitID: unitID, DisplayName: ua.NewLocalizedText(""), Description: ua.NewLocalizedText(""),
	}))
	c.srv.variable(n, ua.NewStringNodeID(2, key+".EngineeringUnits"), "EngineeringUnits", id.HasProperty, id.EUInformation, func() *ua.DataValue {
		return &ua.DataValue{EncodingMask: ua.DataValueValue, Value: unit}
	})
	if value != nil {
		c.changing = append(c.changing, n)
	}
}
