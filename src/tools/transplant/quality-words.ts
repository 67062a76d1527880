/** Bits per byte with their error, in words. */
import type { Quality } from './report';

/** `1.2345 ± 0.0067 bits per byte` */
export function qualityWords({ bitsPerByte, margin }: Quality): string {
  return `${bitsPerByte.toFixed(4)}${margin === null ? '' : ` ± ${margin.toFixed(4)}`} bits per byte`;
}
