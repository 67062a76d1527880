import process from 'node:process';
import { printableText } from '../formats/names';
import { isQuiet } from './arguments';
import { type AnyProgress, progressText } from './print';

interface Terminal {
  readonly isTTY?: boolean;
  readonly columns?: number;
  write(text: string): unknown;
}

/** Seconds between two lines in a log file. */
const LOG_SECONDS = 10;

/**
 * Prints progress: one line that is written over on a terminal; elsewhere a line when the phase changes and every ten
 * seconds.
 */
export function progressPrinter(
  out: Terminal,
  now: () => number = Date.now,
): { print: (progress: AnyProgress) => void; end: () => void } {
  if (isQuiet()) return { print: () => undefined, end: () => undefined };
  let phase = '';
  let printedAt = Number.NEGATIVE_INFINITY;
  let isLineOpen = false;
  return {
    print(progress) {
      const text = printableText(progressText(progress));
      if (out.isTTY) {
        out.write(`\r\x1b[K${text.slice(0, Math.max(1, (out.columns ?? 80) - 1))}`);
        isLineOpen = true;
        return;
      }
      if (progress.phase === phase && now() - printedAt < LOG_SECONDS * 1000) return;
      phase = progress.phase;
      printedAt = now();
      out.write(`${text}\n`);
    },
    end() {
      if (isLineOpen) out.write('\n');
      isLineOpen = false;
    },
  };
}

/** Does something with its progress on the terminal. */
export async function withProgress<T>(
  run: (print: (progress: AnyProgress) => void) => Promise<T>,
): Promise<T> {
  const printer = progressPrinter(process.stderr);
  return run(printer.print).finally(() => printer.end());
}
