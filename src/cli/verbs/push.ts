import { resolve } from 'node:path';
import { parseTwo, placeOf, placeOptions, usageOf } from '../arguments';
import { openPusher, type PushOptions, pushFolder, pushText, repoOf } from '../push-folder';
import type { Verb } from '../verb';

interface PushCommand extends PushOptions {
  folder: string;
}

const pushOptions = {
  private: { kind: 'boolean', help: 'A repository that is made is private.', default: false },
  replace: { kind: 'boolean', help: 'Replaces files that are there already.', default: false },
  message: { kind: 'text', argument: 'TEXT', help: 'Title of the commit.' },
  hub: placeOptions.hub,
} as const;

export const pushVerb: Verb<PushCommand> = {
  name: 'push',
  usage: `  push <folder> <owner/name> ${usageOf(pushOptions)}
      Sends a merged folder to a model repository on the Hub as one commit; the repository is made where it is missing.
      Files that are there already are replaced with --replace only. HF_TOKEN has to be a token that may write.
`,

  options: pushOptions,

  parse(args) {
    const { subjects, options } = parseTwo('push', 'a folder and a repository', args, pushOptions);
    const [folder, repo] = subjects;
    const { private: isPrivate, replace, message } = options;
    return {
      ...{ folder, repo: repoOf(repo), private: isPrivate, replace },
      ...(message === undefined ? {} : { message }),
      ...placeOf(options),
    };
  },

  async run(command, { workingFolder, undo, say }) {
    const worker = await openPusher(command, undo);
    say(pushText(await pushFolder(worker.calls, resolve(workingFolder, command.folder), command)));
    return 0;
  },
};
