/** Numbers in report files: plain ASCII digits, a point, four significant digits. */

/** `0.1024`, `6.858`, `1.2e-7`; 0 is `0`. */
export function real(x: number): string {
  if (x === 0 || !Number.isFinite(x)) return String(x);
  const size = Math.abs(x);
  return size >= 1e-4 && size < 1e6 ? String(Number(x.toPrecision(4))) : x.toExponential(2);
}

/** A share as `10.2 %`; never 0 % or 100 % for what is neither. */
export function percent(share: number): string {
  const text = (share * 100).toFixed(2);
  if (share > 0 && text === '0.00') return '<0.01 %';
  if (share < 1 && text === '100.00') return '>99.99 %';
  return `${text} %`;
}
