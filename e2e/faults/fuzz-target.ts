/** What the fuzzer damages, and how it is parsed. */

export interface FuzzTarget {
  name: string;
  /** Sound inputs. */
  seeds: (string | Uint8Array<ArrayBuffer>)[];
  /** Parses; resolves to what is wrong with having taken it, or undefined. Throws AmalgamError to refuse. */
  parse(bytes: Uint8Array<ArrayBuffer>): string | undefined | Promise<string | undefined>;
  /** At least so many mutations in the long run. */
  runs: number;
}
