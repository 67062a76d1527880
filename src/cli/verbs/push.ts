import { basename, dirname, resolve } from 'node:path';
import { homepage } from '../../../package.json';
import { AmalgamError } from '../../errors';
import { isRepoId } from '../../formats/hub-id';
import { counted, formatBytes, formatSeconds } from '../../formats/quantity';
import { diskDirectory } from '../../host/node/storage';
import type { PushReport } from '../../reports/push';
import type { WorkerCalls } from '../../worker/calls';
import { defineVerb, type Place, placeOptions, usage } from '../arguments';
import { listFolder } from '../folder-listing';
import { hubAddress, openNode } from '../job';
import type { CommandWorker } from '../node-worker';
import { withProgress } from '../print';

export const pushVerb = defineVerb({
  name: 'push',
  subjects: ['folder', 'owner/name'],
  about:
    'Sends a merged folder to a model repository on the Hub as one commit; the repository is made where it is missing. Files that are there already are replaced with --replace only. HF_TOKEN has to be a token that may write.',
  options: {
    private: { kind: 'boolean', help: 'A repository that is made is private.', default: false },
    replace: { kind: 'boolean', help: 'Replaces files that are there already.', default: false },
    message: { kind: 'text', argument: 'TEXT', help: 'Title of the commit.' },
    hub: placeOptions.hub,
  },

  async run({ subjects: [folder = '', repo = ''], options }, place) {
    const { workingFolder, say } = place;
    const command = { repo: repoOf(repo), ...options };
    const worker = await openPusher(command, place);
    say(pushText(await pushFolder(worker.calls, resolve(workingFolder, folder), command)));
    return 0;
  },
});

// `push`, and `merge --push` after the merge: uploads a folder on this disk to a model repository on the Hub.

/** Where a push goes and how. */
interface PushOptions {
  repo: string;
  private: boolean;
  replace: boolean;
  /** Title of the commit. */
  message?: string;
  hub?: string;
}

/** @throws Usage unless it is `owner/name` */
export function repoOf(repo: string): string {
  if (isRepoId(repo) && repo.includes('/')) return repo;
  throw usage(`${repo} is not the name of a repository; it is owner/name.`);
}

/** A session that can push, once its token was seen to be one that may write. @throws Unauthorized */
export async function openPusher({ hub }: PushOptions, place: Place): Promise<CommandWorker> {
  const worker = await openNode(place);
  place.undo.push(() => worker.close());
  await worker.calls.setHub(hubAddress(hub));
  const { name, mayWrite } = await worker.calls.hubAccount();
  if (mayWrite) return worker;
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
  const request = {
    source,
    repo,
    private: isPrivate,
    replace: taken,
    summary: message ?? `Upload ${name}`,
    ...(homepage && { studio: homepage }),
  };
  return withProgress((print) => calls.push(request, print));
}

/** The report in a line or two. */
export function pushText({ page, commit, files, created, seconds }: PushReport): string {
  const bytes = files.reduce((sum, file) => sum + (file.sent ? file.bytes : 0), 0);
  const repository = created ? `${page} was made` : page;
  return `${repository}: commit ${commit.slice(0, 8)}, ${counted(files.length, 'file')}, ${formatBytes(bytes)} sent, ${formatSeconds(seconds)}`;
}
