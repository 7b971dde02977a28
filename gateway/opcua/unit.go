package opcua

import (
	"fmt"

	"github.com/gopcua/opcua/ua"
)

// unece is the namespace of unit ids that are codes of UNECE Recommendation 20
// (OPC UA Part 8 §5.6.3).
const unece = "http://www.opcfoundation.org/UA/units/un/cefact"

// unitOf returns the UCUM unit of what a server says of a node, and a sentence if
// there is something that cannot be understood. A unit that is not known is
// better than a wrong one.
func unitOf(eu *ua.EUInformation) (unit, remark string) {
	name := ""
	if eu.DisplayName != nil {
		name = eu.DisplayName.Text
	}
	if eu.NamespaceURI == unece {
		if unit, ok := ucum[uneceCode(eu.UnitID)]; ok {
			return unit, ""
		}
	}
	if unit, ok := spellings[name]; ok {
		return unit, ""
	}
	if spelt[name] {
		return name, ""
	}
	if name == "" && (eu.UnitID == -1 || eu.UnitID == 0) {
		return "", "" // the server has none
	}
	return "", fmt.Sprintf("the server's unit %q (%s) has no UCUM name here; give one in a tag file", name, uneceCode(eu.UnitID))
}

// uneceCode is the code in a unit id: its ASCII characters, first to last from the
// highest byte down.
func uneceCode(id int32) string {
	var code []byte
	for shift := 24; shift >= 0; shift -= 8 {
		if c := byte(id >> shift); c != 0 {
			code = append(code, c)
		}
	}
	return string(code)
}

// spelt are the units that stand for themselves.
var spelt = func() map[string]bool {
	m := map[string]bool{}
	for _, unit := range ucum {
		m[unit] = true
	}
	return m
}()

// spellings are units as servers write them that have no code.
var spellings = map[string]string{
	"°C": "Cel", "degC": "Cel", "deg C": "Cel", "C": "Cel", "°F": "[degF]", "degF": "[degF]", "°": "deg",
	"rpm": "{rpm}/min", "RPM": "{rpm}/min", "1/min": "/min", "U/min": "{rpm}/min", "r/min": "{rpm}/min",
	"psi": "[psi]", "sec": "s", "hr": "h", "µm": "um", "μm": "um", "µs": "us", "μs": "us", "Ω": "Ohm", "kΩ": "kOhm", "MΩ": "MOhm",
	"m³": "m3", "m²": "m2", "m³/h": "m3/h", "m³/s": "m3/s", "l": "L", "l/min": "L/min", "l/h": "L/h", "l/s": "L/s",
	"m/s²": "m/s2", "kg/m³": "kg/m3", "g/cm³": "g/cm3", "Nm": "N.m", "N·m": "N.m", "kWh": "kW.h", "MWh": "MW.h", "Wh": "W.h",
	"VA": "V.A", "kVA": "kV.A", "mm²/s": "mm2/s", "Pa·s": "Pa.s", "mPa·s": "mPa.s", "ppm": "[ppm]", "pH": "[pH]", "lbf": "[lbf_av]",
}

// ucum has the units of machines and plants among the codes of UNECE
// Recommendation 20, revision 17, by their UCUM names (version 2.1). Codes that
// name trade units, or a quantity that UCUM has no unit for, are left out.
var ucum = map[string]string{
	// temperature
	"CEL": "Cel", "FAH": "[degF]", "KEL": "K", "A48": "[degR]",
	// length, area, volume
	"MTR": "m", "DMT": "dm", "CMT": "cm", "MMT": "mm", "4H": "um", "C45": "nm", "KMT": "km", "INH": "[in_i]", "FOT": "[ft_i]", "YRD": "[yd_i]", "SMI": "[mi_i]",
	"MTK": "m2", "DMK": "dm2", "CMK": "cm2", "MMK": "mm2", "INK": "[sin_i]", "FTK": "[sft_i]", "HAR": "har",
	"MTQ": "m3", "DMQ": "dm3", "CMQ": "cm3", "MMQ": "mm3", "LTR": "L", "DLT": "dL", "CLT": "cL", "MLT": "mL", "HLT": "hL",
	"GLL": "[gal_us]", "INQ": "[cin_i]", "FTQ": "[cft_i]",
	// angle
	"DD": "deg", "C81": "rad", "C25": "mrad", "D61": "'", "D62": "''", "A91": "gon",
	// time
	"SEC": "s", "C26": "ms", "B98": "us", "C47": "ns", "MIN": "min", "HUR": "h", "DAY": "d", "WEE": "wk", "MON": "mo", "ANN": "a",
	// speed, acceleration, rotation, frequency
	"MTS": "m/s", "C16": "mm/s", "2M": "cm/s", "2X": "m/min", "KMH": "km/h", "HM": "[mi_i]/h", "FS": "[ft_i]/s", "FR": "[ft_i]/min", "KNT": "[kn_i]",
	"MSK": "m/s2", "K40": "[g]", "2A": "rad/s", "2B": "rad/s2", "RPM": "{rpm}/min", "RPS": "{rev}/s", "M44": "{rev}", "E96": "deg/s",
	"HTZ": "Hz", "KHZ": "kHz", "MHZ": "MHz", "A86": "GHz", "C94": "/min", "C97": "/s", "H10": "/h",
	// mass, density, concentration
	"KGM": "kg", "GRM": "g", "MGM": "mg", "MC": "ug", "TNE": "t", "LBR": "[lb_av]", "ONZ": "[oz_av]", "KTN": "kt",
	"KMQ": "kg/m3", "23": "g/cm3", "GL": "g/L", "M1": "mg/L", "GP": "mg/m3", "GQ": "ug/m3", "A93": "g/m3", "B35": "kg/L", "59": "[ppm]", "61": "[ppb]",
	// flow
	"MQH": "m3/h", "MQS": "m3/s", "G53": "m3/min", "2J": "cm3/s", "G51": "L/s", "L2": "L/min", "E32": "L/h", "41": "mL/min",
	"KGS": "kg/s", "F31": "kg/min", "E93": "kg/h", "F28": "g/min", "E18": "t/h",
	// pressure, force, torque
	"PAL": "Pa", "74": "mPa", "A97": "hPa", "KPA": "kPa", "MPA": "MPa", "A89": "GPa", "BAR": "bar", "MBR": "mbar", "ATM": "atm", "ATT": "att", "PS": "[psi]", "HN": "mm[Hg]", "HP": "mm[H2O]",
	"NEW": "N", "B47": "kN", "B73": "MN", "C20": "mN", "B37": "kgf", "C78": "[lbf_av]", "NU": "N.m", "B48": "kN.m", "D83": "mN.m", "4P": "N/m",
	// energy, power
	"JOU": "J", "KJO": "kJ", "3B": "MJ", "GV": "GJ", "WHR": "W.h", "KWH": "kW.h", "MWH": "MW.h", "GWH": "GW.h", "A53": "eV", "D70": "cal_IT", "E14": "kcal_IT",
	"WTT": "W", "C31": "mW", "KWT": "kW", "MAW": "MW", "A90": "GW", "BHP": "[HP]", "D54": "W/m2", "D53": "W/(m.K)",
	// electricity
	"VLT": "V", "2Z": "mV", "D82": "uV", "KVT": "kV", "AMP": "A", "4K": "mA", "B84": "uA", "C39": "nA", "B22": "kA",
	"OHM": "Ohm", "E45": "mOhm", "B49": "kOhm", "B75": "MOhm", "SIE": "S", "C27": "mS", "B99": "uS", "D10": "S/m", "H61": "mS/cm", "G42": "uS/cm",
	"D46": "V.A", "KVA": "kV.A", "MVA": "MV.A", "COU": "C", "AMH": "A.h", "FAR": "F", "4O": "uF", "C41": "nF", "4T": "pF", "81": "H", "C14": "mH", "B90": "uH",
	"WEB": "Wb", "D33": "T", "C29": "mT", "D50": "V/m",
	// light, sound, radiation
	"LUX": "lx", "LUM": "lm", "CDL": "cd", "A24": "cd/m2", "2N": "dB", "BQL": "Bq", "A95": "Gy", "D13": "Sv",
	// viscosity
	"C65": "Pa.s", "C24": "mPa.s", "C7": "cP", "4C": "cSt", "C17": "mm2/s", "S4": "m2/s",
	// substance, ratio, count, information
	"C34": "mol", "C18": "mmol", "C36": "mol/m3", "C38": "mol/L", "Q30": "[pH]", "P1": "%", "C62": "1", "H87": "{piece}", "EA": "{each}",
	"A99": "bit", "AD": "By", "2P": "kBy", "4L": "MBy", "E34": "GBy", "B10": "bit/s", "C74": "kbit/s",
}
