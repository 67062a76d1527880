/** The headless command and the Hub: what was downloaded stays, what another program downloaded is taken, and a result is pushed. */
import { execFile } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { expect, test } from '@playwright/test';
import { parseDocument } from 'yaml';
import { type FakeHub, READER_TOKEN, sampleModels, startFakeHub, WRITER_TOKEN } from '../fake-hub';
import { cardErrors } from '../fake-hub/model-card';

const root = join(import.meta.dirname, '../..');
const samples = join(root, 'public/samples');
let hub: FakeHub;
let work: string;
test.beforeEach(async () => {
  work = mkdtempSync(join(tmpdir(), 'amalgam-command-hub-'));
  hub = await startFakeHub({ models: sampleModels(samples), pieceBytes: 1_000_000 });
});
test.afterEach(async () => {
  await hub.close();
  rmSync(work, { recursive: true, force: true });
});

function amalgam(
  args: string[],
  env: Record<string, string> = {},
): Promise<{ code: number; stdout: string; stderr: string }> {
  return new Promise((resolve) => {
    const options = { cwd: root, env: { ...process.env, ...env } };
    execFile(process.execPath, ['src/cli/amalgam.mjs', ...args], options, (error, stdout, stderr) =>
      resolve({ code: error ? Number(error.code) : 0, stdout, stderr }),
    );
  });
}

function recipe(): string {
  const file = join(work, 'recipe.yml');
  writeFileSync(
    file,
    'merge_method: linear\nmodels:\n- {model: amalgam/base, parameters: {weight: 1}}\n- {model: amalgam/workshop, parameters: {weight: 1}}\n',
  );
  return file;
}

const weightRequests = () => hub.requests.filter((r) => r.server === 'cdn' && r.method === 'GET');

test('the second merge, verify and evaluate ask for no weights', async () => {
  const where = ['--hub', hub.url, '--cache', join(work, 'cache')];
  const first = await amalgam(['merge', recipe(), '--out', join(work, 'first'), ...where]);
  expect(first, first.stderr).toMatchObject({ code: 0 });
  const downloads = weightRequests().length;
  expect(downloads).toBeGreaterThan(0);

  const second = await amalgam(['merge', recipe(), '--out', join(work, 'second'), ...where, '--quiet']);
  expect(second, second.stderr).toMatchObject({ code: 0 });
  expect(second.stderr).not.toContain('tensors ·');
  expect((await amalgam(['verify', join(work, 'second'), ...where])).code).toBe(0);
  expect(weightRequests()).toHaveLength(downloads);
  const bytes = (name: string) => readFileSync(join(work, name, 'model.safetensors'));
  expect(bytes('second').equals(bytes('first'))).toBe(true);
});

test('models in the cache of huggingface_hub are taken from there, by their name on the Hub', async () => {
  const commit = '0123456789abcdef0123456789abcdef01234567';
  for (const name of ['base', 'workshop']) {
    const place = join(work, 'hf', `models--amalgam--${name}`);
    mkdirSync(join(place, 'refs'), { recursive: true });
    writeFileSync(join(place, 'refs/main'), commit);
    cpSync(join(samples, name), join(place, 'snapshots', commit), { recursive: true });
  }
  const out = join(work, 'merged');
  const { code, stderr } = await amalgam(['merge', recipe(), '--out', out], {
    HF_HUB_CACHE: join(work, 'hf'),
  });
  expect(code, stderr).toBe(0);
  expect(stderr).toContain('amalgam/base: commit 01234567 from the Hugging Face cache');
  const card = readFileSync(join(out, 'README.md'), 'utf8');
  expect(card).toMatch(/base_model:\n {2}- amalgam\/base\n {2}- amalgam\/workshop/);
  expect(card).not.toContain(work);
});

test('a result is pushed by merge --push and by push; a token that only reads is refused before the merge', async () => {
  const out = join(work, 'merged');
  const args = ['merge', recipe(), '--out', out, '--hub', hub.url, '--push', 'writer/merged'];
  const refused = await amalgam(args, { HF_TOKEN: READER_TOKEN });
  expect(refused.code).toBe(1);
  expect(refused.stderr).toContain('can only read');
  expect(weightRequests()).toHaveLength(0);

  const pushed = await amalgam([...args, '--private'], { HF_TOKEN: WRITER_TOKEN });
  expect(pushed, pushed.stderr).toMatchObject({ code: 0 });
  expect(pushed.stderr).toMatch(/writer\/merged was made: commit [0-9a-f]{8}/);
  const stored = await fetch(`${hub.url}/writer/merged/resolve/main/model.safetensors`, {
    headers: { Authorization: `Bearer ${WRITER_TOKEN}` },
  });
  expect(Buffer.from(await stored.arrayBuffer()).equals(readFileSync(join(out, 'model.safetensors')))).toBe(
    true,
  );
  expect((await fetch(`${hub.url}/writer/merged/resolve/main/config.json`)).status).toBe(401);

  // the card as the hub took it: models of the Hub alone, what they are to it, their license, and how to run it
  const readme = await fetch(`${hub.url}/writer/merged/resolve/main/README.md`, {
    headers: { Authorization: `Bearer ${WRITER_TOKEN}` },
  });
  const card = await readme.text();
  expect(parseDocument(card.split('---\n')[1]!).toJS()).toEqual({
    base_model: ['amalgam/base', 'amalgam/workshop'],
    base_model_relation: 'merge',
    library_name: 'transformers',
    license: 'mit',
    tags: ['merge', 'amalgam'],
  });
  expect(cardErrors(card)).toEqual([]);
  expect(card).toMatch(/^# \S/m);
  expect(card).toContain('## Use it');
  expect(card).not.toContain(work);

  const again = ['push', out, 'writer/merged', '--hub', hub.url];
  const kept = await amalgam(again, { HF_TOKEN: WRITER_TOKEN });
  expect(kept.code).toBe(1);
  expect(kept.stderr).toContain('--replace');
  const replaced = await amalgam([...again, '--replace', '--message', 'Again'], { HF_TOKEN: WRITER_TOKEN });
  expect(replaced, replaced.stderr).toMatchObject({ code: 0 });
});

test('says its version, how a verb is used, and what bash can complete', async () => {
  const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  expect((await amalgam(['--version'])).stdout).toBe(`${version}\n`);
  const help = (await amalgam(['push', '--help'])).stdout;
  expect(help).toContain('push <folder> <owner/name>');
  expect(help).not.toContain('extract-lora');
  const { stdout } = await amalgam(['completion']);
  const completed = await new Promise<string>((resolve) => {
    const script = `${stdout}\nCOMP_WORDS=(amalgam merge --gg); COMP_CWORD=2; _amalgam; echo "\${COMPREPLY[*]}"`;
    execFile('bash', ['-c', script], (_, words) => resolve(words.trim()));
  });
  expect(completed).toBe('--gguf --gguf-only');
});
