/** What `push` does, and `merge --push` after the merge: a folder on this disk to a model repository on the Hub. */
import { basename, dirname, resolve } from 'node:path';
import process from 'node:process';
import { AmalgamError } from '../errors';
import { isRepoId } from '../formats/hub-id';
import { formatBytes, formatSeconds } from '../formats/quantity';
import { defaultCache } from '../host/node/platform';
import { diskDirectory } from '../host/node/storage';
import type { PushReport } from '../reports/push';
import type { WorkerCalls } from '../worker/calls';
import { type Options, parseTwo, usage, whereOptions } from './arguments';
import type { Place } from './compare-verbs';
import { openNode } from './job';
import { progressPrinter } from './progress-printer';
import { listFolder } from './served-folder';

export const PUSH_USAGE = `  push <folder> <owner/name> [--private] [--replace] [--message TEXT] [--hub URL]
      Sends a merged folder to a model repository on the Hub as one commit; the repository is made where it is missing.
      Files that are there already are replaced with --replace only. HF_TOKEN has to be a token that may write.
`;

/** Where a push goes and how. */
export interface PushOptions {
  repo: string;
  private: boolean;
  replace: boolean;
  /** Title of the commit. */
  message?: string;
  hub?: string;
}

export interface PushCommand extends PushOptions {
  verb: 'push';
  folder: string;
}

const OPTIONS: Options = {
  private: { type: 'boolean' },
  replace: { type: 'boolean' },
  message: { type: 'string' },
  hub: { type: 'string' },
};

/** @throws Usage */
export function parsePush(args: string[]): PushCommand {
  const { subjects, options } = parseTwo('push', 'a folder and a repository', args, OPTIONS);
  const [folder, repo] = subjects;
  const { message } = options;
  return {
    ...{ verb: 'push', folder, repo: repoOption(repo) },
    ...{ private: options.private === true, replace: options.replace === true },
    ...(typeof message === 'string' ? { message } : {}),
    ...whereOptions(options),
  };
}

/** @throws Usage for what is no `owner/name` */
export function repoOption(repo: string): string {
  if (isRepoId(repo) && repo.includes('/')) return repo;
  throw usage(`${repo} is not the name of a repository; it is owner/name.`);
}

export async function pushVerb(command: PushCommand, { workingFolder, undo, say }: Place): Promise<number> {
  const engine = await openNode(defaultCache());
  undo.push(() => engine.close());
  await requireWriter(engine.calls, command.hub);
  const report = await pushFolder(engine.calls, resolve(workingFolder, command.folder), command);
  say(pushText(report));
  return 0;
}

/** Sees that the token may write, before work is done for it. @throws Unauthorized */
export async function requireWriter(calls: WorkerCalls, hub: string | undefined): Promise<void> {
  const token = process.env.HF_TOKEN;
  await calls.setHub({ ...(hub === undefined ? {} : { url: hub }), ...(token ? { token } : {}) });
  const { name, mayWrite } = await calls.hubAccount();
  if (mayWrite) return;
  throw new AmalgamError(
    'Unauthorized',
    `The token in HF_TOKEN, of ${name}, can only read.`,
    'Create one with write permission in your account settings.',
  );
}

/** Sends every file of a folder. @throws DestinationNotEmpty unless files may be replaced, and what pushing throws */
export async function pushFolder(
  calls: WorkerCalls,
  folder: string,
  { repo, private: isPrivate, replace, message }: PushOptions,
): Promise<PushReport> {
  const { files } = await listFolder(folder);
  const name = basename(folder);
  const source = {
    ...{ kind: 'folder' as const, handle: diskDirectory(dirname(folder)), name },
    files: [...files.keys()],
  };
  const { taken } = await calls.pushTarget(repo, source);
  if (taken.length > 0 && !replace) {
    throw new AmalgamError(
      'DestinationNotEmpty',
      `${repo} already has ${taken.join(', ')}.`,
      'Use --replace to replace these files, or choose another name.',
    );
  }
  const printer = progressPrinter(process.stderr);
  const request = { source, repo, private: isPrivate, replace: taken, summary: message ?? `Upload ${name}` };
  return calls.push(request, printer.print).finally(() => printer.end());
}

/** The report in a line or two. */
export function pushText({ page, commit, files, created, seconds }: PushReport): string {
  const bytes = files.reduce((sum, file) => sum + (file.sent ? file.bytes : 0), 0);
  const repository = created ? `${page} was made` : page;
  return `${repository}: commit ${commit.slice(0, 8)}, ${files.length} files, ${formatBytes(bytes)} sent, ${formatSeconds(seconds)}`;
}
