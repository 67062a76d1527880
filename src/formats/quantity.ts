/**
 * Numbers as the studio and the command print them: every one with its unit, joined by a no-break space, digits grouped
 * by a narrow no-break space, decimals with a point. Pure and locale-free, so that tables, tests and screenshots agree.
 */

/** No-break space between a number and its unit. */
export const NBSP = '\u00a0';
const GROUP = '\u202f';
const MINUS = '\u2212';

/** An integer with grouped digits: `44 032`. */
export function formatCount(n: number): string {
  const digits = Math.abs(Math.round(n)).toString();
  const grouped = digits.replace(/\B(?=(\d{3})+(?!\d))/g, GROUP);
  return n < 0 ? MINUS + grouped : grouped;
}

/** `1 layer`, `24 layers`: the same in the prose of messages, with a plain space and the digits as they are. */
export function counted(n: number, one: string, many = `${one}s`): string {
  return `${n} ${n === 1 ? one : many}`;
}

/** `1 tensor`, `57 tensors`. */
export function formatCounted(n: number, one: string, many = `${one}s`): string {
  return `${formatCount(n)}${NBSP}${n === 1 ? one : many}`;
}

/** The files with weights among those of an output: `2 shards`, `1 shard and a GGUF file`, `a GGUF file`. */
export function formatWeightFiles(files: readonly string[]): string {
  const shards = files.filter((file) => file.endsWith('.safetensors')).length;
  if (!files.some((file) => file.endsWith('.gguf'))) return formatCounted(shards, 'shard');
  return shards === 0 ? 'a GGUF file' : `${formatCounted(shards, 'shard')} and a GGUF file`;
}

/** Bytes in decimal units with three significant digits: `0 B`, `344 B`, `2.54 MB`, `15.3 GB`. */
export function formatBytes(bytes: number): string {
  return scaled(bytes, ['B', 'kB', 'MB', 'GB', 'TB', 'PB']);
}

/** Bytes per second: `812 MB/s`. */
export function formatRate(bytesPerSecond: number): string {
  return `${formatBytes(bytesPerSecond)}/s`;
}

/** A parameter count: `1.24 M`, `7.62 B` (billions, as model names have it). */
export function formatParameters(n: number): string {
  return n < 1000 ? formatCount(n) : scaled(n, ['', 'K', 'M', 'B', 'T']);
}

/** A share in [0, 1] with one decimal: `80.1 %`. Never rounds to 0 % or 100 % what is neither. */
export function formatPercent(share: number): string {
  const text = (share * 100).toFixed(1);
  if (share > 0 && text === '0.0') return `<0.1${NBSP}%`;
  if (share < 1 && text === '100.0') return `>99.9${NBSP}%`;
  return `${text.replace('-', MINUS)}${NBSP}%`;
}

/** A real number with three significant digits: `0.00310`, `12.4`, `1.20e−7`; 0 is `0`. */
export function formatReal(x: number): string {
  if (x === 0) return '0';
  if (!Number.isFinite(x)) return String(x).replace('-', MINUS);
  const size = Math.abs(x);
  const text = size >= 1e-4 && size < 1e5 ? x.toPrecision(3) : x.toExponential(2);
  // toPrecision writes 1.23e+4 for 12345; the exponent is of no use below 100 000.
  const plain = size >= 1000 && size < 1e5 ? Math.round(x).toString() : text;
  return plain.replace('e+', 'e').replaceAll('-', MINUS);
}

/** Duration in words: `84 ms`, `3.2 s`, `1 min 20 s`, `2 h 05 min`. */
export function formatSeconds(seconds: number): string {
  if (seconds < 0.9995) return `${Math.round(seconds * 1000)}${NBSP}ms`;
  if (seconds < 59.95) return `${seconds.toFixed(1)}${NBSP}s`;
  const whole = Math.round(seconds);
  if (whole < 3600) return `${Math.floor(whole / 60)}${NBSP}min ${pad(whole % 60)}${NBSP}s`;
  return `${Math.floor(whole / 3600)}${NBSP}h ${pad(Math.floor((whole % 3600) / 60))}${NBSP}min`;
}

/** Time that is left, estimated: `about 12 s`, `about 3 min`, `about 1 h 20 min`; never none. */
export function formatAbout(seconds: number): string {
  if (seconds < 55) return `about ${Math.max(1, Math.ceil(seconds))}${NBSP}s`;
  const minutes = Math.ceil(seconds / 60);
  if (minutes < 60) return `about ${minutes}${NBSP}min`;
  return `about ${Math.floor(minutes / 60)}${NBSP}h ${pad(minutes % 60)}${NBSP}min`;
}

/** The same as a part of a line of progress: `about 12 s left`; empty where it is not known, and at the end. */
export function formatLeft(seconds: number | null): string {
  return seconds === null || seconds <= 0 ? '' : `${formatAbout(seconds)} left`;
}

/** A tensor's shape: `128 × 352`; a scalar's is `scalar`. */
export function formatShape(shape: readonly number[]): string {
  return shape.length === 0 ? 'scalar' : shape.map((n) => formatCount(n)).join(`${NBSP}×${NBSP}`);
}

/** A parameter value in a field, with as many decimals as its step has: step 0.01 → `0.20`; a tiny one as `1e-5`. */
export function formatSetting(value: number, step: number | undefined): string {
  const decimals = step === undefined ? 0 : (step.toString().split('.')[1]?.length ?? 0);
  const fixed = value.toFixed(decimals);
  if (Number(fixed) === value) return fixed;
  return Math.abs(value) < 1e-4 ? value.toExponential() : String(value);
}

function scaled(n: number, units: readonly string[]): string {
  let value = n;
  let unit = 0;
  // 999.5 would print as 1000: step up where rounding to three digits carries over.
  while (Math.abs(value) >= 999.5 && unit < units.length - 1) {
    value /= 1000;
    unit += 1;
  }
  const decimals = unit === 0 || value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
  const text = unit === 0 ? formatCount(value) : value.toFixed(decimals);
  return units[unit] === '' ? text : `${text}${NBSP}${units[unit]}`;
}

function pad(n: number): string {
  return n.toString().padStart(2, '0');
}

/** The number with so many decimals; 0 has no sign: `−0.50`, `0.00`. */
export function formatFixed(value: number, decimals: number): string {
  const text = value.toFixed(decimals);
  return (Number(text) === 0 ? text.replace('-', '') : text).replace('-', '\u2212');
}
