package der

import "time"

// checkUTCTime takes YYMMDDHHMMSSZ only: DER needs the seconds and Z.
func checkUTCTime(c []byte, at int) *Error {
	if len(c) != 13 || c[12] != 'Z' || !all(c[:12], isDigit) {
		return &Error{at, "§11.8", "a UTCTime is not YYMMDDHHMMSSZ"}
	}
	year := 1900 + number(c[:2])
	if year < 1950 {
		year += 100
	}
	if !isTime(year, c[2:12]) {
		return &Error{at, "§11.8", "a UTCTime names a day or a time that does not exist"}
	}
	return nil
}

// checkGeneralizedTime takes YYYYMMDDHHMMSS[.f]Z only, where f does not end with zero.
func checkGeneralizedTime(c []byte, at int) *Error {
	const whole = len("YYYYMMDDHHMMSS")
	if len(c) <= whole || c[len(c)-1] != 'Z' || !all(c[:whole], isDigit) {
		return &Error{at, "§11.7", "a GeneralizedTime is not YYYYMMDDHHMMSSZ"}
	}
	if fraction := c[whole : len(c)-1]; len(fraction) > 0 {
		if len(fraction) < 2 || fraction[0] != '.' || !all(fraction[1:], isDigit) || fraction[len(fraction)-1] == '0' {
			return &Error{at, "§11.7", "a GeneralizedTime has a malformed fraction"}
		}
	}
	if !isTime(number(c[:4]), c[4:whole]) {
		return &Error{at, "§11.7", "a GeneralizedTime names a day or a time that does not exist"}
	}
	return nil
}

// isTime tells whether MMDDHHMMSS exists in year. Leap seconds do not exist in PKIX.
func isTime(year int, c []byte) bool {
	month, day := number(c[:2]), number(c[2:4])
	// the zeroth day of the next month is the last one of this
	return 1 <= month && month <= 12 && 1 <= day && day <= time.Date(year, time.Month(month+1), 0, 0, 0, 0, 0, time.UTC).Day() &&
		number(c[4:6]) < 24 && number(c[6:8]) < 60 && number(c[8:10]) < 60
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// number reads decimal digits.
func number(c []byte) int {
	n := 0
	for _, digit := range c {
		n = 10*n + int(digit-'0')
	}
	return n
}
