import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { SAMPLES } from '../../e2e/disk-folder';
import { type FakeHub, READER_TOKEN, sampleModels, startFakeHub, WRITER_TOKEN } from '../../e2e/fake-hub.ts';
import { AmalgamError } from '../errors';
import { openHubModel } from './hub';
import type { Hub } from './hub-request';
import {
  createRepo,
  hubAccount,
  type PutBlob,
  pushTarget,
  putBlob as put,
  type UploadFile,
  uploadFiles,
  validateCard,
} from './hub-upload';
import { findFile } from './model-folder';

const PIECE = 1000;
let server: FakeHub;

beforeAll(async () => {
  server = await startFakeHub({ models: sampleModels(SAMPLES), pieceBytes: PIECE });
});
afterAll(() => server.close());
afterEach(() => {
  server.faults.length = 0;
  server.requests.length = 0;
});

const hub = (more: Partial<Hub> = {}): Hub => ({
  url: server.url,
  token: WRITER_TOKEN,
  sleep: async () => {},
  ...more,
});
const never = new AbortController().signal;

const file = (path: string, bytes: Uint8Array<ArrayBuffer>): UploadFile => ({
  path,
  content: new Blob([bytes]),
});
const weights = (seed: number) => Uint8Array.from({ length: 2600 }, (_, i) => (i * 7 + seed) & 0xff);
const config = () => file('config.json', new TextEncoder().encode('{"model_type":"llama"}'));

function meter() {
  const told = { begun: [] as number[], advanced: 0, hashed: 0, committing: 0 };
  let phase = '';
  return {
    told,
    begin: (begun: 'hashing' | 'sending', bytes: number) => {
      phase = begun;
      if (phase === 'sending') told.begun.push(bytes);
    },
    advance: (bytes: number) => {
      if (phase === 'sending') told.advanced += bytes;
      else told.hashed += bytes;
    },
    committing: () => {
      told.committing++;
    },
  };
}

async function upload(repo: string, files: UploadFile[], how = put, at = hub()) {
  const target = await pushTarget(at, repo);
  const progress = meter();
  const done = await uploadFiles(
    at,
    { repo, files, summary: 'Merged', parent: target.commit ?? '' },
    progress,
    never,
    how,
  );
  return { ...done, ...progress.told };
}

/** Bytes of a file as the hub serves it to anyone with the token. */
async function stored(repo: string, path: string): Promise<Uint8Array> {
  const source = findFile(await openHubModel(hub(), repo), path)!.open();
  return source.read(0, source.byteLength);
}

describe('account and target', () => {
  test('a token says whose it is and whether it may write', async () => {
    expect(await hubAccount(hub())).toEqual({ name: 'writer', organizations: ['amalgam'], mayWrite: true });
    expect(await hubAccount(hub({ token: READER_TOKEN }))).toMatchObject({ name: 'reader', mayWrite: false });
    const none = { url: server.url };
    await expect(hubAccount(none)).rejects.toMatchObject({ code: 'Unauthorized' });
    await expect(hubAccount(hub({ token: 'nonsense' }))).rejects.toMatchObject({ code: 'Unauthorized' });
    await expect(hubAccount(hub({ token: 'hf_unknown' }))).rejects.toMatchObject({ code: 'Unauthorized' });
  });

  test('what is there is told from what is not, and odd names are refused', async () => {
    const there = await pushTarget(hub(), 'amalgam/base');
    expect(there).toMatchObject({ exists: true, page: `${server.url}/amalgam/base` });
    expect(there.files).toContain('model.safetensors');
    expect(await pushTarget(hub(), 'writer/nothing')).toMatchObject({
      exists: false,
      commit: null,
      files: [],
    });
    for (const odd of ['alone', 'a/b/c', '../x', 'a/b?x', '']) {
      await expect(pushTarget(hub(), odd)).rejects.toMatchObject({ code: 'UnsafeName' });
    }
  });
});

describe('upload', () => {
  test('in pieces and whole: the hub serves the same bytes, and only the second origin saw them', async () => {
    expect(await createRepo(hub(), 'writer/first', true)).toBe(true);
    const large = weights(1);
    const small = weights(2).slice(0, 900);
    const files = [file('model-1.safetensors', large), file('model-2.safetensors', small), config()];
    const done = await upload('writer/first', files);
    expect(done.begun).toEqual([3500]);
    expect(done).toMatchObject({ hashed: 3500, advanced: 3500, committing: 1 });
    expect([...done.sent]).toEqual(['model-1.safetensors', 'model-2.safetensors']);
    expect(await stored('writer/first', 'model-1.safetensors')).toEqual(large);
    expect(await stored('writer/first', 'model-2.safetensors')).toEqual(small);
    expect(await stored('writer/first', 'config.json')).toEqual(
      new Uint8Array(await config().content.arrayBuffer()),
    );
    const puts = server.requests.filter((r) => r.method === 'PUT');
    expect(puts).toHaveLength(4);
    expect(puts.every((r) => r.server === 'cdn' && r.authorization === undefined)).toBe(true);
    // private: invisible without the token
    await expect(openHubModel({ url: server.url }, 'writer/first')).rejects.toMatchObject({
      code: 'Unauthorized',
    });
  });

  test('what the hub has is not sent again, and other files of the repository stay', async () => {
    await createRepo(hub(), 'writer/again', false);
    const shard = file('model.safetensors', weights(3));
    await upload('writer/again', [shard, config()]);
    const again = await upload('writer/again', [
      shard,
      file('README.md', new TextEncoder().encode('# card')),
    ]);
    expect(again.begun).toEqual([0]);
    expect(again.sent.size).toBe(0);
    const { files } = await pushTarget(hub(), 'writer/again');
    expect(files.sort()).toEqual(['.gitattributes', 'README.md', 'config.json', 'model.safetensors']);
  });

  test('a repository that is there already is not created', async () => {
    expect(await createRepo(hub(), 'amalgam/base', false)).toBe(false);
  });

  test('a lost connection is tried again and counted back', async () => {
    await createRepo(hub(), 'writer/lossy', false);
    let failures = 2;
    const lossy: PutBlob = (url, content, signal, onSent) => {
      if (failures-- <= 0) return put(url, content, signal, onSent);
      onSent(400);
      return Promise.reject(new Error('cut'));
    };
    const done = await upload('writer/lossy', [file('model.safetensors', weights(4))], lossy);
    expect(done.advanced).toBe(2600);
    expect(await stored('writer/lossy', 'model.safetensors')).toEqual(weights(4));
  });

  test('the words of base64 are exact for every length', async () => {
    await createRepo(hub(), 'writer/lengths', false);
    const files = [0, 1, 2, 3, 24_575, 24_576, 24_577, 60_001].map((n) =>
      file(
        `${n}.json`,
        Uint8Array.from({ length: n }, (_, i) => (i * 31) & 0xff),
      ),
    );
    await upload('writer/lengths', files);
    for (const { path, content } of files) {
      expect(await stored('writer/lengths', path), path).toEqual(new Uint8Array(await content.arrayBuffer()));
    }
  });
});

describe('refusals', () => {
  test('a token that may not write, an owner of somebody else, no token', async () => {
    const readOnly = createRepo(hub({ token: READER_TOKEN }), 'reader/x', false);
    await expect(readOnly).rejects.toMatchObject({
      code: 'Unauthorized',
      message: expect.stringContaining('you must use a write token'),
    });
    await expect(createRepo(hub(), 'stranger/x', false)).rejects.toMatchObject({
      message: expect.stringContaining('namespace "stranger"'),
    });
    const none = createRepo({ url: server.url, sleep: async () => {} }, 'writer/x', false);
    await expect(none).rejects.toMatchObject({ code: 'Unauthorized' });
  });

  test('a commit in between is not overwritten', async () => {
    await createRepo(hub(), 'writer/raced', false);
    const { commit } = await pushTarget(hub(), 'writer/raced');
    await upload('writer/raced', [config()]);
    const files = [file('config.json', new TextEncoder().encode('{}'))];
    const late = uploadFiles(
      hub(),
      { repo: 'writer/raced', files, summary: 'Late', parent: commit! },
      meter(),
      never,
      put,
    );
    await expect(late).rejects.toMatchObject({ code: 'FileChanged' });
    expect(await stored('writer/raced', 'config.json')).toEqual(
      new Uint8Array(await config().content.arrayBuffer()),
    );
  });

  test('bytes that are not those that were announced are refused by the storage', async () => {
    await createRepo(hub(), 'writer/wrong', false);
    const turned: PutBlob = (url, content, signal, onSent) =>
      put(url, new Blob(['x', content.slice(1)]), signal, onSent);
    const shard = file('model.safetensors', weights(5).slice(0, 500));
    await expect(upload('writer/wrong', [shard], turned)).rejects.toMatchObject({ code: 'HubError' });
    expect((await pushTarget(hub(), 'writer/wrong')).files).toEqual(['.gitattributes']);
  });

  test.each([
    [403, /addresses for sending last/],
    [409, /^Push again: files that arrived/],
    [413, /smaller files/],
    [507, /make room there/],
    [503, /Push again later/],
  ])('the store refuses with %i: the next step is one that helps', async (status, hint) => {
    await createRepo(hub(), `writer/refused-${status}`, true, never);
    const refusing: PutBlob = async () => ({ status, etag: null });
    const files = [file('model.safetensors', weights(status))];
    await expect(upload(`writer/refused-${status}`, files, refusing)).rejects.toMatchObject({
      message: expect.stringContaining(`status ${status}`),
      hint: expect.stringMatching(hint),
    });
  });

  test('a failure at any step, however soon it comes, ends the push', async () => {
    await createRepo(hub(), 'writer/soon', false);
    const files = [1, 2, 3].map((n) => file(`model-${n}.safetensors`, weights(40 + n)));
    const soon: PutBlob = () => Promise.reject(new Error('cut'));
    await expect(upload('writer/soon', files, soon)).rejects.toMatchObject({ code: 'Offline' });
    for (const step of ['preupload', 'batch', 'commit']) {
      const at = hub({
        fetch: ((url: string, init) =>
          url.includes(step)
            ? Promise.reject(new AmalgamError('StorageFull', 'no', 'no'))
            : fetch(url, init)) as typeof fetch,
      });
      await expect(upload('writer/soon', files, put, at), step).rejects.toMatchObject({
        code: 'StorageFull',
      });
    }
    expect((await upload('writer/soon', files)).begun).toEqual([0]);
  });

  test('the commit is asked for once; everything before it again when the server fails', async () => {
    await createRepo(hub(), 'writer/shaky', false);
    const fail = (path: string, times: number) =>
      server.faults.push({ path, times, fault: { kind: 'status', status: 503 } });
    fail('/api/models/writer/shaky/preupload/main', 2);
    fail('/writer/shaky.git/info/lfs/objects/batch', 1);
    await upload('writer/shaky', [file('model.safetensors', weights(6))]);
    fail('/api/models/writer/shaky/commit/main', 1);
    await expect(upload('writer/shaky', [config()])).rejects.toMatchObject({ code: 'HubError' });
    const commits = server.requests.filter((r) => r.path.endsWith('/commit/main'));
    expect(commits.map((r) => r.status)).toEqual([200, 503]);
  });

  test('of a commit that was refused the outcome is known; of one that was answered oddly it is not', async () => {
    await createRepo(hub(), 'writer/odd', false);
    const path = '/api/models/writer/odd/commit/main';
    server.faults.push({ path, fault: { kind: 'status', status: 429 } });
    await expect(upload('writer/odd', [config()])).rejects.toMatchObject({
      code: 'RateLimited',
      hint: expect.not.stringContaining('not known'),
    });
    const page = hub({
      fetch: async (input, init) =>
        String(input).endsWith(path) ? new Response('<html>') : fetch(input, init),
    });
    await expect(upload('writer/odd', [config()], put, page)).rejects.toMatchObject({
      hint: expect.stringContaining('not known whether the commit was made'),
    });
  });

  test('a hub that names another server for its own steps is refused, and the token stays', async () => {
    const posts: string[] = [];
    const at = hub({
      fetch: (async (input: string, init?: RequestInit) => {
        posts.push(`${init?.method ?? 'GET'} ${input}`);
        const answered = await fetch(input, init);
        if (!input.endsWith('/batch')) return answered;
        const text = (await answered.text()).replaceAll(
          `${server.url}/api/complete`,
          'http://127.0.0.1:1/api/complete',
        );
        return new Response(text, { status: 200 });
      }) as typeof fetch,
    });
    await createRepo(at, 'writer/led', false);
    await expect(
      upload('writer/led', [file('model.safetensors', weights(7))], put, at),
    ).rejects.toMatchObject({
      code: 'HubError',
      message: expect.stringContaining('another server'),
    });
    expect(posts.some((p) => p.includes('127.0.0.1:1/'))).toBe(false);
  });

  test('canceling ends it before anything is committed', async () => {
    await createRepo(hub(), 'writer/gone', false);
    const { commit } = await pushTarget(hub(), 'writer/gone');
    const controller = new AbortController();
    const slow: PutBlob = (_url, _content, signal) =>
      new Promise((_, reject) => {
        signal.addEventListener('abort', () => reject(new Error('aborted')));
        controller.abort();
      });
    const files = [file('model.safetensors', weights(8))];
    await expect(
      uploadFiles(
        hub(),
        { repo: 'writer/gone', files, summary: 'x', parent: commit! },
        meter(),
        controller.signal,
        slow,
      ),
    ).rejects.toMatchObject({ code: 'Canceled' });
    expect((await pushTarget(hub(), 'writer/gone')).commit).toBe(commit);
  });
});

describe('the metadata of a model card', () => {
  const card = (metadata: string) => `---\n${metadata}\n---\n# Merged\n`;
  const check = (readme: string) => validateCard(hub(), 'writer/merged', readme, never);

  test('are taken where they name models of the hub', async () => {
    await check(
      card('base_model:\n- amalgam/base\n- amalgam/workshop\nbase_model_relation: merge\nlicense: mit'),
    );
    await check('# No metadata');
  });

  test.each([
    ['base_model: /home/me/model', /"base_model" with value "\/home\/me\/model"/],
    ['base_model: base', /"base_model" with value "base"/],
    ['license: My own', /license/],
    ['tags: [[x]]', /"tags" must be/],
    ['a: [', /not valid YAML/],
  ])('%s is refused before anything is sent', async (metadata, words) => {
    await expect(check(card(metadata))).rejects.toMatchObject({
      code: 'ConfigInvalid',
      message: expect.stringMatching(words),
    });
    expect(server.requests.filter((r) => r.method === 'PUT')).toEqual([]);
  });
});
