import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { AmalgamError } from '../../errors';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
let folder: string;
let guarded: typeof import('../../foreign/foreign-text');

/** As the command is bundled. */
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'amalgam-foreign-'));
  const { bundleForNode } = await import(pathToFileURL(join(ROOT, 'src/cli/build-command.mjs')).href);
  await bundleForNode(ROOT, folder, {
    guarded: 'src/foreign/foreign-text.ts',
    starter: 'src/host/node/start-thread.ts',
    'foreign-text': 'src/worker/node-foreign-text.ts',
  });
  guarded = await import(pathToFileURL(join(folder, 'guarded.mjs')).href);
  const { startForeignText } = await import(pathToFileURL(join(folder, 'starter.mjs')).href);
  guarded.startForeignTextWith(startForeignText);
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

test('R59: a template that does not end is stopped in Node too, and what comes after it works', async () => {
  const messages = [{ role: 'user' as const, content: 'Hello' }];
  const loop = '{% for i in range(100000) %}{% for j in range(100000) %}{% endfor %}{% endfor %}';
  await expect(
    guarded.renderGuarded({ template: loop, tokens: {} }, [messages], true, undefined, 500),
  ).rejects.toMatchObject({
    code: 'TokenizerInvalid',
    message: expect.stringContaining('did not finish'),
  });
  const template = '{{ bos }}{{ messages[0].content }}';
  expect(await guarded.renderGuarded({ template, tokens: { bos: '<s>' } }, [messages], true)).toEqual([
    '<s>Hello',
  ]);
  await expect(guarded.guardedTokenizer({ hasSentencePiece: false }, 'none')).rejects.toMatchObject({
    code: 'TokenizerUnsupported',
    message: expect.stringContaining('no tokenizer.json'),
  });
});

test('R58: an expression that backtracks is given up in Node, and a parquet file comes through its thread', async () => {
  const evil = guarded.matchModules(
    [{ pattern: '(a+)+b', value: 1 }],
    ['a'.repeat(300)],
    'adapter_config.json',
  );
  await expect(evil).rejects.toMatchObject({ code: 'AdapterUnsupported' });
  const bytes = new Uint8Array(readFileSync(join(ROOT, 'e2e/fixtures/dataset/zstd.parquet')));
  const source = { byteLength: bytes.length, read: async (b: number, e: number) => bytes.slice(b, e) };
  const file = await guarded.openGuardedParquet(source, 'a.parquet');
  const rows = [];
  for await (const part of file.rows(['text'], 1000)) rows.push(...part);
  file.close();
  expect(rows).toHaveLength(40);
  const broken = {
    ...source,
    read: () => Promise.reject(new AmalgamError('NotFound', 'It is gone.', 'Look.')),
  };
  await expect(guarded.openGuardedParquet(broken, 'a.parquet')).rejects.toMatchObject({ code: 'NotFound' });
});
