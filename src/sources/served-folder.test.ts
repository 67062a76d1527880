import { expect, test } from 'vitest';
import { openServedFolder } from './served-folder';

const ORIGIN = 'http://127.0.0.1:5555';
const bytes = Uint8Array.from({ length: 100 }, (_, i) => i);

/** A server of one folder with two files, as the headless command has it. */
const fetch: typeof globalThis.fetch = async (input, init) => {
  const url = String(input);
  if (url === `${ORIGIN}/models/0/`) {
    return Response.json({
      files: [
        { path: 'a b/#1.bin', size: 100 },
        { path: 'config.json', size: 2 },
      ],
    });
  }
  if (url === `${ORIGIN}/models/0/a%20b/%231.bin`) {
    const [, begin, end] = /bytes=(\d+)-(\d+)/.exec(new Headers(init?.headers).get('Range') ?? '') ?? [];
    return new Response(bytes.slice(Number(begin), Number(end) + 1), {
      status: 206,
      headers: { 'Content-Range': `bytes ${begin}-${end}/100` },
    });
  }
  return new Response(null, { status: 404 });
};

test('lists the folder and reads its files by ranges', async () => {
  const folder = await openServedFolder('./merged', '/models/0/', { fetch }, ORIGIN);
  expect(folder.path).toBe('./merged');
  expect(folder.origin).toEqual({ kind: 'served' });
  expect(folder.files.map((f) => [f.path, f.byteLength])).toEqual([
    ['a b/#1.bin', 100],
    ['config.json', 2],
  ]);
  expect(await folder.files[0]?.open().read(10, 20)).toEqual(bytes.slice(10, 20));
  await expect(folder.files[1]?.open().read(0, 2)).rejects.toMatchObject({ code: 'NotFound' });
});

test.each([
  'http://127.0.0.1:5556/models/0/',
  'https://127.0.0.1:5555/models/0/',
  'https://elsewhere.example/',
  '//elsewhere.example/models/',
  '/models/0',
  '/models/?x=/',
])('%s is refused without a request', async (url) => {
  await expect(
    openServedFolder('m', url, { fetch: () => Promise.reject(new Error('was asked')) }, ORIGIN),
  ).rejects.toMatchObject({ code: 'Usage' });
});

test.each(['<!doctype html>', '{}', '{"files":[{"path":"x"}]}', '{"files":[{"path":"x","size":-1}]}'])(
  'the listing %s is refused',
  async (text) => {
    const answer = async () => new Response(text);
    await expect(openServedFolder('m', '/m/', { fetch: answer }, ORIGIN)).rejects.toMatchObject({
      code: 'HubError',
    });
  },
);

test('a listing that leaves its folder is refused', async () => {
  const answer = async () => Response.json({ files: [{ path: '../secret', size: 1 }] });
  await expect(openServedFolder('m', '/m/', { fetch: answer }, ORIGIN)).rejects.toMatchObject({
    code: 'UnsafePath',
  });
});
