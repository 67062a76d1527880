/** Target of the fuzzer: sound inputs to damage, and their parser. */

export interface FuzzTarget {
  name: string;
  /** Sound inputs. */
  seeds: (string | Uint8Array<ArrayBuffer>)[];
  /** Parses; resolves to the reason why accepting it was wrong, or undefined. Throws AmalgamError to refuse. */
  parse(bytes: Uint8Array<ArrayBuffer>): string | undefined | Promise<string | undefined>;
  /** At least so many mutations in the long run. */
  runs: number;
}
