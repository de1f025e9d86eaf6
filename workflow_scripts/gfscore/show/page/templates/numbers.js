// Numbers as gfscore.core.numbers prints them: three significant digits, lower bounds down, upper bounds up.

const MISSING = "n/a", MINUS = "\u2212";

const isMissing = (value) => value === null || value === undefined || Number.isNaN(value);

// Beyond 12 digits lies rounding of the arithmetic; the rest is done on whole numbers, as decimal arithmetic does.
function printed(value, rounding, digits = 3) {
  if (isMissing(value)) return MISSING;
  if (!Number.isFinite(value)) return value > 0 ? "\u221e" : MINUS + "\u221e";
  const [mantissa, power] = Math.abs(value).toExponential(11).split("e");
  let whole = Number(mantissa.replace(".", "")), exponent = Number(power);
  if (whole === 0) return "0";
  const unit = 10 ** (12 - digits), rest = whole % unit;
  whole = (whole - rest) / unit;
  const outwards = (rounding === "up") !== (value < 0);
  if (rounding === "nearest" ? rest * 2 > unit || (rest * 2 === unit && whole % 2) : rest && outwards) whole += 1;
  if (String(whole).length > digits) { whole /= 10; exponent += 1; }
  return (value < 0 ? MINUS : "") + written(String(whole), exponent, digits);
}

function written(text, exponent, digits) {
  if (exponent < -4) return `${text[0]}.${text.slice(1)}e${MINUS}${-exponent}`;
  if (exponent < 0) return "0." + "0".repeat(-exponent - 1) + text;
  const padded = text.padEnd(exponent + 1, "0");
  const left = padded.slice(0, exponent + 1).replace(/\B(?=(\d{3})+$)/g, ",");
  return exponent + 1 >= digits ? left : `${left}.${padded.slice(exponent + 1)}`;
}

const number = (value) => printed(value, "nearest");
const lowerBound = (value) => printed(value, "down");

// No bound beyond the end of the range is printed; one too near to it gets more digits, or the end itself.
function upperBound(value, highest) {
  if (isMissing(highest) || isMissing(value)) return printed(value, "up");
  for (let digits = 3; digits <= 5; digits += 1) {
    const text = printed(value, "up", digits);
    if (Number(text.replace(/,/g, "").replaceAll(MINUS, "-")) <= Number(highest.toPrecision(12))) return text;
  }
  return endOfRange(highest);
}

const endOfRange = (highest) => String(Number(printed(highest, "down", 5).replace(/,/g, "").replaceAll(MINUS, "-")));

const interval = (low, high, highest) =>
  isMissing(low) || isMissing(high) ? MISSING : `${lowerBound(low)} to ${upperBound(high, highest)}`;

const withInterval = (value, low, high, highest) =>
  number(value) + (isMissing(low) || isMissing(high) ? "" : ` (${interval(low, high, highest)})`);

const setting = (value) => String(value).replace("-", MINUS);
const temperature = (value) => setting(Number(value.toPrecision(3)));
const count = (value) => (isMissing(value) ? MISSING : Math.trunc(value).toLocaleString("en-GB"));
const plural = (amount, word, words = word.endsWith("s") ? word + "es" : word + "s") =>
  `${count(amount)} ${amount === 1 ? word : words}`;
