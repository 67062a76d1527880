/** The headless command: the studio's own jobs in this process, driven from a terminal. */

import process from 'node:process';
import { version } from '../../package.json';
import { AmalgamError, errorReport } from '../errors';
import { printableText } from '../formats/names';
import type { Undo } from './arguments';
import { completionText, helpText, parseCommand } from './command';
import { VERBS } from './verbs';

const EXIT_FAILED = 1;
const EXIT_USAGE = 2;
const EXIT_INTERRUPTED = 130;

const isNpmRun = process.env.npm_lifecycle_event === 'amalgam';

/** `npm run` changes into the project's folder; paths on the command line mean the folder it was called from. */
function workingFolderOf(): string {
  try {
    return (isNpmRun && process.env.INIT_CWD) || process.cwd();
  } catch (cause) {
    throw new AmalgamError(
      'NotFound',
      'The folder that the command was called from is gone.',
      'Change to a folder that exists, and call it again.',
      { cause },
    );
  }
}

/** The one place where lines leave for the terminal: escapes control sequences, because lines quote files and servers. */
const say = (line: string): boolean => process.stderr.write(`${printableText(line)}\n`);

/** Whether somebody reads no more, as behind `| head`: they have what they want, and words would not reach them. */
const isUnread = (thrown: unknown): boolean => (thrown as NodeJS.ErrnoException).code === 'EPIPE';

// what fails is told to who writes
process.stdout.on('error', () => {});

/** Waits until a pipe has taken it all: the process ends right after. @throws `DestinationFailed` where it takes no more */
async function write(text: string): Promise<void> {
  await new Promise<void>((done, failed) =>
    process.stdout.write(printableText(text), (error) => (error ? failed(unwritten(error)) : done())),
  );
}

function unwritten(error: Error): Error {
  if (isUnread(error)) return error;
  return new AmalgamError(
    'DestinationFailed',
    `The standard output took no more (${error.message}).`,
    'Make room where it goes, or send it elsewhere.',
  );
}

async function run(undo: Undo): Promise<number> {
  const command = parseCommand(process.argv.slice(2));
  const verb = VERBS.find(({ name }) => name === command.verb);
  if (verb) return verb.run(command.parsed!, { workingFolder: workingFolderOf(), undo, say, write });
  const texts: Record<string, () => string> = {
    help: () => helpText(command.about),
    version: () => `${version}\n`,
    completion: completionText,
  };
  await write(texts[command.verb]!());
  return 0;
}

/** Resolves on a request to end the command. A killed npm sends its script no signal: it is just gone. */
async function interruption(): Promise<void> {
  const parent = process.ppid;
  return new Promise((resolve) => {
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, () => resolve());
    if (isNpmRun) setInterval(() => process.ppid !== parent && resolve(), 500).unref();
  });
}

async function main(): Promise<number> {
  const undo: Undo = [];
  const interrupted = interruption().then(() => {
    say('\nInterrupted.');
    return EXIT_INTERRUPTED;
  });
  // an unhandled failure ends the command like any other
  let isOver = false;
  const lost = new Promise<never>((_, fail) => {
    for (const event of ['unhandledRejection', 'uncaughtException'] as const) {
      process.on(event, (thrown) => {
        if (!isOver) fail(thrown);
        else if (!isUnread(thrown)) say(errorReport(thrown).message);
      });
    }
  });
  // threads keep no process alive, so that they cannot keep one that is done; one that waits for them is not done
  const alive = setInterval(() => {}, 60_000);
  try {
    return await Promise.race([run(undo), interrupted, lost]);
  } catch (thrown) {
    if (isUnread(thrown)) return EXIT_FAILED;
    const { code, message, hint } = errorReport(thrown);
    say(`${message}\n${hint}`);
    return code === 'Usage' ? EXIT_USAGE : EXIT_FAILED;
  } finally {
    isOver = true;
    clearInterval(alive);
    for (const act of undo.reverse())
      await act().catch((thrown: unknown) => say(errorReport(thrown).message));
  }
}

process.exit(await main());
