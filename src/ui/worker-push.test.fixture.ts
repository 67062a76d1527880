/** Pushing of the fake worker: a hub with one account and the outputs pushed to it. */

import type { HubAccount, PushProgress } from '../reports/push';
import type { WorkerCalls } from '../worker/calls';
import type { Step } from './worker-running.test.fixture';

export interface PushFixtureOptions {
  account?: Partial<HubAccount>;
  /** Repositories that are there, with their files. */
  repositories?: Record<string, string[]>;
}

const OUTPUT = ['config.json', 'README.md', 'model.safetensors'];
const BYTES = 2_480_000;
const COMMIT = '0123456789abcdef0123456789abcdef01234567';

export function pretendPush(options: PushFixtureOptions, begin: () => void, step: Step) {
  const repositories = new Map(Object.entries(options.repositories ?? {}));
  const page = (repo: string) => `https://huggingface.co/${repo}`;
  return {
    beginSignIn: async () => ({ url: 'https://huggingface.co/oauth/authorize', state: 'asked' }),
    finishSignIn: async () => undefined,
    hubAccount: async () => ({ name: 'maker', organizations: [], mayWrite: true, ...options.account }),
    pushTarget: async (repo) => {
      const files = repositories.get(repo);
      const taken = (files ?? []).filter((file) => OUTPUT.includes(file));
      const exists = files !== undefined;
      return { repo, page: page(repo), exists, commit: exists ? COMMIT : null, files: files ?? [], taken };
    },
    push: async ({ repo }, onProgress) => {
      begin();
      for (let tenth = 0; tenth <= 10; tenth++) {
        await step(tenth);
        onProgress(progressAt(tenth / 10));
      }
      const created = !repositories.has(repo);
      repositories.set(repo, [...new Set([...(repositories.get(repo) ?? []), ...OUTPUT])]);
      const files = OUTPUT.map((path) => {
        const sent = path.endsWith('.safetensors');
        return { path, bytes: sent ? BYTES : 900, sha256: 'ab'.repeat(32), sent };
      });
      return { repo, page: page(repo), commit: COMMIT, created, files, seconds: 1.2 };
    },
  } satisfies Partial<WorkerCalls>;
}

function progressAt(share: number): PushProgress {
  return {
    phase: 'sending',
    item: 'model.safetensors',
    tensorsDone: 0,
    tensors: 0,
    bytesDone: share * BYTES,
    bytes: BYTES,
    bytesPerSecond: 2e6,
    secondsLeft: (1 - share) * 1.2,
    stages: { read: 0, upload: 0, compute: 0, readback: 0, write: 0 },
    finished: [],
  };
}
