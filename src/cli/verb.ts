/** A verb of the command, and the place it runs in. */
import type { Options } from '../reports/option';

/** Cleanup at the end of a verb, last first, however it ends. */
export type Undo = (() => Promise<void>)[];

/** Where a verb runs and where it prints. */
export interface Place {
  /** Paths on the command line are meant from here. */
  workingFolder: string;
  undo: Undo;
  say(line: string): void;
  write(text: string): Promise<void>;
}

/** One file in `verbs/` and its row in `verbs/index.ts`. */
export interface Verb<C extends object = object> {
  name: string;
  /** Every form of it with a description, as `--help` prints it. */
  usage: string;
  /** All that it takes, in the order that `--help` of the verb lists. */
  options: Options;
  /** Reads its arguments. @throws Usage saying which is wrong */
  parse(args: string[]): C;
  /** Does it. @returns the exit code */
  run(command: C, place: Place): Promise<number>;
}
