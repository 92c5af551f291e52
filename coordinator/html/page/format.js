"use strict";

// Numbers and units as people read them.
const Format = (() => {
  const isNumber = value => typeof value === "number" && Number.isFinite(value);

  // 0.28714 -> "0.2871"; large ones in full, with separators.
  function number(value, digits = 4) {
    if (!isNumber(value)) return "";
    if (value !== 0 && (Math.abs(value) < 1e-4 || Math.abs(value) >= 1e15)) return value.toExponential(digits - 2);
    if (Math.abs(value) >= 10 ** (digits - 1)) return Math.round(value).toLocaleString("en-US");
    return String(Number(value.toPrecision(digits))).replace("-", "−");
  }

  // By thousands: scaled(1234567, ["B", "kB", "MB"]) -> "1.23 MB".
  function scaled(value, units) {
    if (!isNumber(value)) return "";
    let unit = 0;
    let rest = Math.abs(value);
    while (rest >= 999.5 && unit + 1 < units.length) {
      rest /= 1000;
      ++unit;
    }
    const text = rest >= 100 || unit === 0 ? String(Math.round(rest)) : String(Number(rest.toPrecision(3)));
    return (value < 0 ? "−" : "") + text + " " + units[unit];
  }

  const bytes = value => scaled(value, ["B", "kB", "MB", "GB", "TB", "PB"]);
  const bitsPerSecond = value => scaled(value, ["bit/s", "kbit/s", "Mbit/s", "Gbit/s", "Tbit/s"]);
  const count = value => (isNumber(value) ? Math.round(value).toLocaleString("en-US") : "");
  // 1234567 -> "1.23 M"
  const about = value => scaled(value, ["", "k", "M", "G"]).trim();
  const percent = (value, decimals = 1) => (isNumber(value) ? (100 * value).toFixed(decimals) + " %" : "");

  // "340 µs", "41.2 ms", "1.35 s", "5 min 12 s", "3 h 04 min".
  function seconds(value) {
    if (!isNumber(value)) return "";
    if (value <= 0) return value === 0 ? "0 s" : "−" + seconds(-value);
    if (value < 0.9995e-3) return Number((1e6 * value).toPrecision(3)) + " µs";
    if (value < 0.9995) return Number((1e3 * value).toPrecision(3)) + " ms";
    if (value < 99.95) return Number(value.toPrecision(3)) + " s";
    const whole = Math.round(value);
    const pad = part => String(part).padStart(2, "0");
    if (whole < 3600) return Math.floor(whole / 60) + " min " + pad(whole % 60) + " s";
    return Math.floor(whole / 3600) + " h " + pad(Math.floor((whole % 3600) / 60)) + " min";
  }

  // "2026-01-02T03:04:05+00:00" -> "2 January 2026, 03:04 UTC"
  function date(text) {
    const when = new Date(text);
    if (Number.isNaN(when.getTime())) return text;
    const day = when.toLocaleDateString("en-GB", {day: "numeric", month: "long", year: "numeric", timeZone: "UTC"});
    return day + ", " + when.toISOString().slice(11, 16) + " UTC";
  }

  const plural = (value, one, many = one + "s") => count(value) + " " + (value === 1 ? one : many);
  const signed = text => (text.startsWith("-") || text.startsWith("−") ? text.replace("-", "−") : "+" + text);

  return {isNumber, number, bytes, bitsPerSecond, count, about, percent, seconds, date, plural, signed};
})();
